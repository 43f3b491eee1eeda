// Loading: text, model, weights, memory, plan, in this order, each with errors that name the thing.
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/machine/machine_memory.h"
#include "base/quantities.h"
#include "base/trace/trace.h"
#include "engine/default_context.h"
#include "engine/drafts/draft_model.h"
#include "engine/parameter_loader.h"

namespace cairn {

namespace {

// Of an engine that waits: what a conversation begins with.
constexpr int32_t kStatesWarm = 2;

// None where rows of answers are among them: these take as long for one token as for some.
store::ComputedTokens prompt_tokens_of(std::span<const StepItem> items) {
  store::ComputedTokens prompt;
  double depths = 0;
  for (const StepItem& item : items) {
    if (item.is_answer) return {};
    const double count = double(item.tokens.size());
    prompt.count += int64_t(item.tokens.size());
    depths += count * (double(item.sequence->length()) + 0.5 * count);
  }
  if (prompt.count > 0) prompt.depth = depths / double(prompt.count);
  return prompt;
}

OutputKind output_kind(std::optional<Pooling> pooling) {
  if (!pooling) return OutputKind::logits;
  return *pooling == Pooling::rank ? OutputKind::scores : OutputKind::vectors;
}

FixedBytes count_plans(const Plans& plans, const Backend& backend) {
  FixedBytes bytes{.weights = backend.weight_bytes(plans.step), .plans = plan_bytes(plans)};
  for (const Plan* plan : {&plans.step, &plans.head, &plans.replay}) {
    bytes.workspace = std::max(bytes.workspace, plan->workspace_bytes);
  }
  return bytes;
}

// Plans of selections that are kept for whoever comes back to one.
constexpr size_t kReadyMax = 8;

// While several conversations share steps, they wait for the disk no longer than this.
constexpr std::chrono::milliseconds kStorePatience(20);

// What waits to be written or sent holds memory that a step may need more; whether there was any.
// A step of several, or beside others that wait, has a moment's patience with the disk. One that is
// alone waits for all of it; or for none of it, where it is tried again.
bool take_back(SequenceStore& store, std::span<const StepItem> items) {
  const bool is_alone = items.size() == 1 && !items.front().others_wait;
  if (!is_alone || !store.is_ready()) return store.drain(kStorePatience);
  if (!items.front().is_tried_again) return store.drain();
  store.hurry();
  // What waits to be sent to other machines is passed over; that is no disk.
  return store.tier() != nullptr && store.tier()->drain();
}

size_t minus(size_t bytes, size_t taken) {
  return bytes - std::min(bytes, taken);
}

// Half of what is left: the rest is for the file's pages and other programs. Each group of layers
// reserves addresses for all of it; a part of these stays for threads and what else comes.
size_t default_memory_budget(const MemoryRoom& room, const FixedBytes& fixed, size_t group_count) {
  if (room.bytes == 0) return size_t(1) << 30;
  const size_t left = minus(room.bytes, fixed.weights + fixed.plans);
  const size_t half = std::max(minus(left, fixed.workspace), left / 4) / 2;
  const size_t addresses = minus(room.address_bytes, fixed.weights + fixed.plans + fixed.workspace);
  return std::min(half, addresses / 4 * 3 / std::max<size_t>(group_count, 1));
}

Result<const BackendType*> find_backend(std::string_view name) {
  std::string known;
  for (const BackendType* type : backend_types()) {
    if (type->name == name) return type;
    known += known.empty() ? "" : ", ";
    known += type->name;
  }
  return fail(ErrorCode::invalid_argument, "backend: expected one of {}, found \"{}\"", known,
              name);
}

// FOLDER/NAME-DIGEST.cairnpack, with the model's name as far as it is harmless in a path.
std::string pack_cache_path(const std::string& folder, std::string_view model, uint64_t digest) {
  const size_t slash = model.rfind('/');
  if (slash != std::string_view::npos) model.remove_prefix(slash + 1);
  if (model.ends_with(".gguf")) model.remove_suffix(5);
  constexpr size_t kNameMax = 64;
  std::string name(model.substr(0, kNameMax));
  for (char& c : name) {
    const bool is_harmless = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!is_harmless) c = '_';
  }
  return fmt::format("{}/{}-{:016x}.cairnpack", folder, name, digest);
}

// Layers behind the model's last guess further tokens; files from before 2024 list the angles of
// the rotation, which follow from the metadata; scales of inputs are for kernels that quantize
// these to four bits.
bool may_stay_unread(std::string_view name, int32_t layer_count, const models::Program& program) {
  constexpr std::string_view kLayer = "blk.";
  if (program.skips_tensor(name)) return true;
  if (!name.starts_with(kLayer)) return name == "output.input_scale";
  if (name.ends_with(".attn_rot_embd") || name.ends_with(".input_scale")) return true;
  int32_t layer = 0;
  std::from_chars(name.data() + kLayer.size(), name.data() + name.size(), layer);
  return layer >= layer_count;
}

// A bias that the model does not know of would make it answer wrongly without a word; without a
// scale what it answers is noise.
Status check_unread(std::vector<std::string_view> names, int32_t layer_count,
                    const models::Program& program) {
  std::erase_if(names,
                [&](std::string_view name) { return may_stay_unread(name, layer_count, program); });
  if (names.empty()) return Ok{};
  for (const std::string_view name : names) {
    if (!name.ends_with(".scale")) continue;
    return fail(ErrorCode::unsupported,
                "{}: expected a number for each matrix of a weight that is multiplied with, found "
                "another scale",
                name);
  }
  constexpr size_t kShown = 4;
  const std::span<const std::string_view> shown(names.data(), std::min(names.size(), kShown));
  const std::string more =
      names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "";
  log::warning("tensors that this model has no use for, and may answer wrongly without: {}{}",
               fmt::join(shown, ", "), more);
  return Ok{};
}

// Error: cancelled, where the loading was given up.
Status expect_wanted(const EngineOptions& options, const gguf::File& file) {
  if (!options.is_given_up || !options.is_given_up()) return Ok{};
  return fail(ErrorCode::cancelled, "{}: the loading was given up", file.name());
}

// Once it has been given up it stays so, for every thread and stage that asks: what one of them
// left out must not be missing from a model that is wanted again.
std::function<bool()> for_good(std::function<bool()> is_given_up) {
  if (!is_given_up) return nullptr;
  return [ask = std::move(is_given_up), is_over = std::make_shared<std::atomic<bool>>(false)] {
    if (!is_over->load() && ask()) is_over->store(true);
    return is_over->load();
  };
}

// A cache of packed weights has those of the layers that run.
uint64_t pack_digest(const gguf::File& file, const models::Program& program) {
  const uint64_t model = file.digest();
  if (program.skipped_layers.empty()) return model;
  Sha256 sha;
  sha.add("cairn pack").add(model);
  for (const int32_t layer : program.skipped_layers) sha.add(uint64_t(layer));
  uint64_t first = 0;
  const Sha256Digest digest = sha.finish();
  std::memcpy(&first, digest.data(), sizeof first);
  return first;
}

// Some models have relatives that see both ways, whose files bear the same architecture.
Status check_direction(const gguf::Metadata& meta, bool is_causal) {
  CAIRN_TRY(const bool found, meta.flag_or("attention.causal", is_causal));
  if (found == is_causal) return Ok{};
  return fail(ErrorCode::unsupported, "{}: expected {}, found {}", meta.key("attention.causal"),
              is_causal, found);
}

}  // namespace

Engine::Engine(std::shared_ptr<const gguf::File> file, const EngineOptions& options)
    : file_(std::move(file)), options_(options) {
  options_.is_given_up = for_good(options.is_given_up);
}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::load(gguf::File file, const EngineOptions& options) {
  TraceSpan span(options.trace, "engine", "load");
  auto shared = std::make_shared<const gguf::File>(std::move(file));
  std::unique_ptr<Engine> engine(new Engine(std::move(shared), options));
  span.add("bytes", int64_t(engine->file_->file_bytes()));
  CAIRN_TRY(engine->text_, ModelText::load(*engine->file_));
  CAIRN_TRY(expect_wanted(engine->options_, *engine->file_));
  CAIRN_TRY(engine->load_all());
  return engine;
}

Result<std::unique_ptr<Engine>> Engine::load_beside(const Engine& whole,
                                                    const EngineOptions& options) {
  TraceSpan span(options.trace, "engine", "load beside");
  std::unique_ptr<Engine> engine(new Engine(whole.file_, options));
  const EngineOptions& same = whole.options_;
  engine->options_.backend = same.backend;
  engine->options_.isa = same.isa;
  engine->options_.numerics = same.numerics;
  engine->options_.threads = whole.threads_;
  engine->text_ = whole.text_;
  engine->backend_ = whole.backend_;
  CAIRN_TRY(engine->load_all());
  return engine;
}

Status Engine::load_all() {
  CAIRN_TRY(load_model());
  CAIRN_TRY(load_weights());
  CAIRN_TRY(adapters_,
            Adapters::load(options_.adapters, architecture_, matrices_, program_, *backend_));
  CAIRN_TRY(prepare_memory());
  if (options_.loads_predictor) {
    CAIRN_TRY(predictor_, Predictor::load(model_.get(), file_.get(), backend_.get(), options_));
    if (predictor_ != nullptr) fixed_bytes_ += predictor_->fixed_bytes();
  }
  CAIRN_TRY(prepare_adapters());
  CAIRN_TRY(expect_wanted(options_, *file_));
  CAIRN_TRY(open_store());
  CAIRN_TRY(load_draft_model());
  // Whoever loads it is gone by then, and so may be what it asks.
  options_.is_given_up = nullptr;
  return Ok{};
}

Status Engine::load_model() {
  CAIRN_TRY(const std::string_view type,
            file_->fields().get_or<std::string_view>("general.type", "model"));
  if (type == "adapter") {
    return fail(ErrorCode::unsupported, "{}: expected a model, found an adapter of one",
                file_->name());
  }
  CAIRN_TRY(create_model());
  CAIRN_TRY(start_threads());
  if (backend_ == nullptr) {
    CAIRN_TRY(const BackendType* backend, find_backend(options_.backend));
    CAIRN_TRY(const BackendOptions backend_options, this->backend_options());
    CAIRN_TRY(backend_, backend->create(backend_options));
  }
  options_.isa = backend_->isa();
  return Ok{};
}

Status Engine::load_draft_model() {
  const DraftModelChoice& choice = options_.draft_model;
  if (choice.path.empty()) return Ok{};
  const DraftModelOptions options{.choice = choice, .pack_cache = options_.pack_cache};
  if (choice.path == "self") {
    CAIRN_TRY(draft_model_, DraftModel::load_self(*this, options));
    return Ok{};
  }
  CAIRN_TRY(gguf::File file, gguf::File::open(choice.path));
  CAIRN_TRY(draft_model_, DraftModel::load(std::move(file), *this, options));
  return Ok{};
}

Status Engine::start_threads() {
  threads_ = options_.threads;
  if (threads_ == nullptr) {
    if (options_.thread_count <= 0) options_.thread_count = usable_core_count();
    CAIRN_TRY(own_threads_, ThreadPool::start(options_.thread_count));
    threads_ = own_threads_.get();
  }
  options_.thread_count = threads_->thread_count();
  return Ok{};
}

// As the file says, or as the program does.
Status Engine::create_model() {
  CAIRN_TRY(gguf::Metadata meta, file_->metadata());
  architecture_ = meta.architecture();
  CAIRN_TRY(const models::Architecture* architecture, models::find_architecture(architecture_));
  models::ProgramChoice& choice = options_.program;
  CAIRN_TRY(program_.expert_used_count, models::choose_experts(choice, meta));
  if (program_.expert_used_count > 0) {
    meta = meta.with_count("expert_used_count", program_.expert_used_count);
  }
  CAIRN_TRY(model_, architecture->create(meta));
  CAIRN_TRY(check_direction(meta, is_causal()));
  if (options_.find_skipped_layers) {
    CAIRN_TRY(const std::vector<int32_t> found, options_.find_skipped_layers(*file_));
    choice.skipped_layers.insert(choice.skipped_layers.end(), found.begin(), found.end());
  }
  CAIRN_TRY(program_.skipped_layers, models::choose_skipped(choice, size().layer_count));
  if (program_.is_default()) return Ok{};
  if (options_.pooling || !model_->makes_text()) {
    return fail(ErrorCode::unsupported,
                "{}: expected all of the model for vectors and scores of texts, found a program of "
                "{}",
                architecture_, program_.text());
  }
  return model_->skip_layers(program_);
}

MemoryRoom Engine::memory_room() const {
  return options_.memory_room ? *options_.memory_room : read_memory_room();
}

Result<BackendOptions> Engine::backend_options() const {
  if (options_.is_unpacked && !options_.pack_cache.empty()) {
    return fail(ErrorCode::invalid_argument,
                "pack cache: expected weights that are packed, found that they are not to be");
  }
  BackendOptions out{.threads = threads_, .isa = options_.isa, .numerics = options_.numerics};
  out.on_progress = options_.on_progress;
  out.pack.is_given_up = [this] { return options_.is_given_up && options_.is_given_up(); };
  out.pack.is_off = options_.is_unpacked;
  if (!options_.pack_cache.empty()) {
    out.pack.model_digest = pack_digest(*file_, program_);
    for (const gguf::Tensor& tensor : file_->tensors()) file_->forget(tensor.bytes);
    out.pack.cache_path =
        pack_cache_path(options_.pack_cache, file_->name(), out.pack.model_digest);
  }
  // The page cache keeps the file for the next start, unless there is no room for it beside the
  // packed weights, which take about as much.
  const bool is_tight = memory_room().bytes < 2 * file_->file_bytes();
  out.advice.before_reading = [this](std::span<const std::byte> blocks) {
    file_->will_need(blocks);
  };
  out.advice.after_reading = [this, is_tight](std::span<const std::byte> blocks) {
    is_tight ? file_->drop(blocks) : file_->forget(blocks);
  };
  return out;
}

Status Engine::load_weights() {
  ParameterLoader loader(file_.get());
  CAIRN_TRY(model_->visit_parameters(loader));
  CAIRN_TRY(expect_purpose());
  CAIRN_TRY(check_unread(loader.unread(), size().layer_count, program_));
  parameter_count_ = loader.parameter_count();
  matrices_ = std::move(loader).take_matrices();
  vectors_ = std::move(loader).take_vectors();
  for (Weight* weight : matrices_) CAIRN_TRY(backend_->load(*weight));
  return expect_wanted(options_, *file_);
}

Status Engine::choose_context() {
  const int32_t trained = size().context_length;
  if (options_.context_tokens <= 0) {
    options_.context_tokens = std::min(trained, kDefaultContextMax);
  } else if (options_.context_tokens > trained) {
    return fail(ErrorCode::invalid_argument,
                "context: expected at most the model's {} tokens, found {}", trained,
                options_.context_tokens);
  }
  // A shift must leave out something, and more than a token at a time.
  const bool can_shift = options_.context_tokens >= 4 && options_.shift_keep >= 0 &&
                         options_.shift_keep <= options_.context_tokens / 2;
  if (options_.context_policy == ContextPolicy::shift && !can_shift) {
    return fail(ErrorCode::invalid_argument,
                "context shift: expected to keep at most half of at least 4 tokens, found {} of {}",
                options_.shift_keep, options_.context_tokens);
  }
  return Ok{};
}

// That the model can make what it is asked for. REQUIRES: its parameters are visited.
Status Engine::expect_purpose() const {
  if (!options_.pooling && !model_->makes_text()) {
    return fail(ErrorCode::unsupported,
                "{}: expected a model that makes text, found one that makes vectors of texts, "
                "which `cairn embed` shows",
                architecture_);
  }
  if (options_.pooling == Pooling::rank && !model_->makes_scores()) {
    return fail(ErrorCode::unsupported,
                "pooling rank: expected a model with a classifier, found {}", architecture_);
  }
  return Ok{};
}

void Engine::choose_step() {
  // A text that is seen at once is one step.
  if (!model_->makes_text()) options_.row_count_max = options_.context_tokens;
  options_.row_count_max = std::min(options_.row_count_max, options_.context_tokens);
}

// Before the weights are taken: there must be room for them, and conversations get of what they
// leave.
Status Engine::choose_budget(const FixedBytes& fixed, const Plans& plans,
                             const memory::Layout& layout) {
  const MemoryRoom room = memory_room();
  const size_t needed_bytes = fixed.weights + fixed.plans;
  if (room.bytes > 0 && needed_bytes > room.bytes) {
    return fail(ErrorCode::memory_full,
                "{}: needs {} bytes ({} of weights, {} of recorded steps), found {} (limit: {}){}",
                file_->name(), needed_bytes, fixed.weights, fixed.plans, room.bytes,
                room.limited_by,
                fixed.weights > 0 ? "; with --no-pack weights are read from the file" : "");
  }
  if (options_.memory_budget == 0) {
    options_.memory_budget = default_memory_budget(room, fixed, layout.groups.size());
  }
  if (options_.on_counted) {
    CAIRN_TRY(options_.memory_budget,
              options_.on_counted({.fixed = fixed,
                                   .conversations = options_.memory_budget,
                                   .plans = plans,
                                   .layout = layout,
                                   .context_tokens = options_.context_tokens}));
  }
  const std::string limit = room.bytes == 0 ? "nobody says how much may be taken"
                                            : fmt::format("{} may be taken (limit: {})",
                                                          show_bytes(room.bytes), room.limited_by);
  log::info("memory: {}; {} for weights, {} for steps, at most {} for conversations", limit,
            show_bytes(fixed.weights), show_bytes(fixed.workspace + fixed.plans),
            show_bytes(options_.memory_budget));
  log::info("threads: {}; the process may use {} cores", options_.thread_count,
            usable_core_count());
  return Ok{};
}

Fingerprint Engine::fingerprint(const Selection& selection) const {
  const std::vector<AdapterSource> sources = adapters_.sources(selection.uses());
  return Fingerprint::of({.model = file_->identity(),
                          .numerics = options_.numerics,
                          .isa = options_.isa,
                          .key_type = options_.key_type,
                          .value_type = options_.value_type,
                          .adapters = sources,
                          .program = &program_});
}

Status Engine::prepare_memory() {
  CAIRN_TRY(choose_context());
  std::vector<std::vector<State>> states;
  for (int32_t layer = 0; layer < size().layer_count; ++layer) {
    states.push_back(program_.skips(layer) ? std::vector<State>{} : model_->layer_states(layer));
  }
  memory::Layout layout = memory::Layout::make(states, backend_->page_format(), options_.key_type,
                                               options_.value_type, size().width);
  choose_step();
  CAIRN_TRY(Plans plans, record(layout, {}));
  CHECK(plans.step.hidden.width == layout.hidden_width);
  layout.add_log(plans.log_widths);
  CAIRN_TRY(fixed_bytes_, count_fixed(plans, layout));
  CAIRN_TRY(choose_budget(fixed_bytes_, plans, layout));
  CAIRN_TRY(const Selection at_load, adapters_.select(adapters_.loaded()));
  CAIRN_TRY(memory_, memory::Memory::create(std::move(layout),
                                            {.budget_bytes = options_.memory_budget,
                                             .context_tokens_max = options_.context_tokens,
                                             .log_step = options_.log_step,
                                             .log_tokens_max = options_.log_tokens_max,
                                             .default_variant = at_load.variant()},
                                            backend_->memory()));
  cache_.emplace(memory_.get());
  TraceSpan span(options_.trace, "engine", "load weights");
  CAIRN_TRY(runner_, Runner::create(std::move(plans), memory_->layout(), backend_.get()));
  stepper_.emplace(memory_.get(), &*cache_, runner_.get(), options_.trace);
  if (!options_.pooling) memory_->keep_states_warm(kStatesWarm);
  return Ok{};
}

// With adapters: what all of them take together, of which a selection's plans are a part; and the
// plans of as many selections as are kept.
Result<FixedBytes> Engine::count_fixed(const Plans& plans, const memory::Layout& layout) {
  FixedBytes fixed = count_plans(plans, *backend_);
  if (adapters().empty()) return fixed;
  CAIRN_TRY(const Plans adapted, record(layout, all_changes()));
  const FixedBytes with_all = count_plans(adapted, *backend_);
  plan_bytes_max_ = with_all.plans;
  fixed.weights = std::max(fixed.weights, with_all.weights);
  fixed.workspace = std::max(fixed.workspace, with_all.workspace);
  fixed.plans += kReadyMax * plan_bytes_max_;
  return fixed;
}

std::vector<LowRank> Engine::all_changes() const {
  std::vector<AdapterUse> all(adapters().begin(), adapters().end());
  for (AdapterUse& use : all) use.scale = 1.0f;
  return adapters_.changes(all);
}

Result<Plans> Engine::record(const memory::Layout& layout, std::span<const LowRank> changes) const {
  Graph graph(layout, {.output_kind = output_kind(options_.pooling),
                       .rounds_prompts = backend_->rounds_prompts(),
                       .alignment = backend_->piece_alignment(),
                       .low_ranks = changes});
  const Tensor made = model_->forward(graph);
  for (const LowRank& change : changes) {
    if (graph.uses(change)) continue;
    return fail(ErrorCode::unsupported,
                "{}: expected a change of a matrix that is multiplied with, found one of {}",
                change.a->name, change.of->name);
  }
  if (options_.pooling && !graph.is_output(made)) {
    return fail(ErrorCode::unsupported,
                "{}: expected an architecture whose vectors are known, found one that makes logits",
                architecture_);
  }
  return std::move(graph).finish(
      made, {.row_count_max = options_.row_count_max, .output_count_max = options_.row_count_max});
}

Result<StepReport> Engine::step(std::span<const StepItem> items, StepAcceptor accept,
                                StepObserver observe, StepGivenUp is_given_up) {
  if (sequence_store_ == nullptr) return stepper_->step(items, accept, observe, is_given_up);
  const store::ComputedTokens prompt = prompt_tokens_of(items);
  sequence_store_->begin_step();
  Result<StepReport> report = stepper_->step(items, accept, observe, is_given_up);
  sequence_store_->end_step(report ? prompt : store::ComputedTokens());
  const bool is_full = !report && report.error().code == ErrorCode::memory_full;
  if (!is_full || !take_back(*sequence_store_, items)) return report;
  return stepper_->step(items, accept, observe, is_given_up);
}

// Vectors of texts keep nothing that could be stored. Where the model's file lies is nobody's
// business.
Status Engine::open_store() {
  const bool has_any = !options_.cache_dir.empty() || options_.open_tier != nullptr;
  if (!has_any || options_.pooling) return Ok{};
  // Under fast-1 an answer that is read again rounds as prompts do.
  const bool audits = numerics() == Numerics::exact_1;
  SequenceStore::Options options{.disk = {.path = options_.cache_dir,
                                          .budget_bytes = options_.cache_disk_budget,
                                          .is_lent = options_.is_cache_lent,
                                          .calls = options_.cache_calls},
                                 .open_tier = options_.open_tier,
                                 .model = file_->name().substr(file_->name().rfind('/') + 1),
                                 .audit_interval = audits ? options_.cache_audit_interval : 0,
                                 .trace = options_.trace};
  CAIRN_TRY(sequence_store_, SequenceStore::open(std::move(options), memory_.get(), &*cache_));
  cache_->on_evict([this](const memory::Sequence& sequence) { demote(sequence); });
  return Ok{};
}

// Of variants that nobody stored or looked up lately nothing can be said, since variants have no
// names.
void Engine::demote(const memory::Sequence& sequence) {
  const Sha256Digest* const known = fingerprints_.find(sequence.variant());
  if (known != nullptr) sequence_store_->demote(sequence, *known);
}

const Sha256Digest& Engine::stored_fingerprint(const Selection& selection) {
  if (const Sha256Digest* const found = fingerprints_.find(selection.variant())) return *found;
  Sha256Digest digest = fingerprint(selection).digest();
  // Tenants have nothing in common on the disk either.
  if (const uint64_t tenant = selection.variant().tenant; tenant != 0) {
    const auto bytes = std::as_bytes(std::span(digest));
    digest = Sha256().add("cairn tenant").add(bytes).add(tenant).finish();
  }
  return fingerprints_.add(selection.variant(), digest);
}

bool Engine::is_own(const store::IndexEntry& stored) {
  return stored.fingerprint == stored_fingerprint(default_selection_.for_tenant(stored.tenant));
}

std::unique_ptr<StoredPrefix> Engine::look_up_stored(const Selection& selection,
                                                     std::span<const Token> prompt, int32_t known) {
  if (sequence_store_ == nullptr) return nullptr;
  return sequence_store_->look_up(stored_fingerprint(selection), selection, prompt, known);
}

void Engine::offer_prompt(const Selection& selection, const memory::Sequence& sequence) {
  if (sequence_store_ == nullptr || sequence_store_->tier() == nullptr) return;
  sequence_store_->offer(sequence, stored_fingerprint(selection), store::SharedTier::Offer::prompt);
}

void Engine::offer_kept(const memory::Sequence& sequence) {
  const Sha256Digest* const known = fingerprints_.find(sequence.variant());
  if (sequence_store_ == nullptr || known == nullptr) return;
  sequence_store_->offer(sequence, *known, store::SharedTier::Offer::kept);
}

void Engine::store_behind(const Selection& selection, const memory::Sequence& sequence) {
  if (sequence_store_ != nullptr) sequence_store_->keep(sequence, stored_fingerprint(selection));
}

store::StoredPart Engine::stored_part(const Selection& selection, std::span<const Token> tokens) {
  if (sequence_store_ == nullptr) return {};
  return sequence_store_->part_of(stored_fingerprint(selection), tokens);
}

Result<StepReport> Engine::step(std::span<const StepItem> items) {
  return step(items, [items](size_t item, const StepOutputs&) {
    return int32_t(items[item].tokens.size());
  });
}

// Whatever requests choose later is known to fit, and packed.
Status Engine::prepare_adapters() {
  cache_->on_shortage([this] { return taken_bytes_ > 0 && drop_idle_plans(); });
  if (adapters().empty()) return Ok{};
  CAIRN_TRY(const Plans plans, record(memory_->layout(), all_changes()));
  const Status prepared = backend_->prepare(plans.step);
  backend_->release(plans.step);
  CAIRN_TRY(std::move(prepared));
  CAIRN_TRY(default_selection_, select(adapters()));
  return Ok{};
}

Result<Selection> Engine::select(std::span<const AdapterUse> uses) {
  CAIRN_TRY(const Selection asked, adapters_.select(uses));
  if (asked.variant() == memory::Variant::plain) return asked;
  const auto known = std::ranges::find(
      ready_, asked.variant(), [](const Ready& ready) { return ready.selection.variant(); });
  if (known != ready_.end()) {
    std::rotate(known, known + 1, ready_.end());
    return ready_.back().selection;
  }
  while (ready_.size() >= kReadyMax && drop_idle_plans()) {
  }
  if (!take_plan_room()) {
    const memory::Usage usage = memory_->usage();
    return fail(ErrorCode::memory_full,
                "memory budget: the plans of these adapters need {} bytes, {} of {} bytes are free",
                plan_bytes_max_, usage.budget_bytes - usage.used_bytes(), usage.budget_bytes);
  }
  Status added = add_plans(asked);
  give_back_plan_room();
  CAIRN_TRY(std::move(added));
  return asked;
}

Status Engine::add_plans(const Selection& selection) {
  CAIRN_TRY(Plans plans, record(memory_->layout(), adapters_.changes(selection.uses())));
  // Variants log the same values, only made otherwise: a sum in place of a product.
  if (plans.log_widths != runner_->plans().log_widths) {
    return fail(ErrorCode::unsupported,
                "adapters: expected changes that the states' log has room for, found others");
  }
  const size_t bytes = plan_bytes(plans);
  if (bytes > plan_bytes_max_) {
    return fail(ErrorCode::unsupported,
                "adapters: expected plans of at most {} bytes, as those of all adapters together, "
                "found {}",
                plan_bytes_max_, bytes);
  }
  CAIRN_TRY(runner_->add(selection.variant(), std::move(plans)));
  ready_.push_back({.selection = selection, .bytes = bytes});
  ready_bytes_ += bytes;
  return Ok{};
}

// Of so many bytes of plans, those that were not counted at load.
size_t Engine::beyond_counted(size_t plan_bytes) const {
  return minus(plan_bytes, kReadyMax * plan_bytes_max_);
}

// For one more selection. Plans that nobody uses go first, then what the prefix cache can do
// without.
bool Engine::take_plan_room() {
  const auto take = [this] {
    const size_t wanted = beyond_counted(ready_bytes_ + plan_bytes_max_);
    if (wanted > taken_bytes_ && !memory_->take_others(wanted - taken_bytes_)) return false;
    taken_bytes_ = std::max(taken_bytes_, wanted);
    return true;
  };
  if (take()) return true;
  while (drop_idle_plans()) {
    if (take()) return true;
  }
  return cache_->make_room(plan_bytes_max_) && take();
}

void Engine::give_back_plan_room() {
  const size_t needed = beyond_counted(ready_bytes_);
  if (needed >= taken_bytes_) return;
  memory_->give_back_others(taken_bytes_ - needed);
  taken_bytes_ = needed;
}

bool Engine::has_plans(memory::Variant variant) const {
  return variant.computation == memory::Variant::plain.computation ||
         std::ranges::any_of(ready_, [&](const Ready& ready) {
           return ready.selection.variant().computation == variant.computation;
         });
}

size_t Engine::new_plan_bytes(memory::Variant variant) const {
  if (has_plans(variant)) return 0;
  return minus(beyond_counted(ready_bytes_ + plan_bytes_max_), taken_bytes_);
}

size_t Engine::idle_plan_bytes() const {
  if (taken_bytes_ == 0) return 0;
  size_t held_bytes = 0;
  for (const Ready& ready : ready_) {
    if (ready.selection.is_shared()) held_bytes += ready.bytes;
  }
  return taken_bytes_ - beyond_counted(held_bytes);
}

// Of the selection whose last use is longest ago, and that nobody holds; whether there was one.
bool Engine::drop_idle_plans() {
  const auto idle =
      std::ranges::find_if(ready_, [](const Ready& ready) { return !ready.selection.is_shared(); });
  if (idle == ready_.end()) return false;
  runner_->drop(idle->selection.variant());
  ready_bytes_ -= idle->bytes;
  ready_.erase(idle);
  give_back_plan_room();
  return true;
}

}  // namespace cairn
