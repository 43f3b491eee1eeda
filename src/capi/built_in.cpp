// Calls become jobs, questions and notes.
#include "capi/built_in.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "capi/convert.h"
#include "capi/timeline.h"
#include "engine/embedder.h"
#include "engine/fingerprint.h"

namespace cairn::capi {

namespace {

// A signal handler can set a mark, and wake nobody.
constexpr std::chrono::milliseconds kLookAtMark(2);

// It is filled, and given back, by notes to the engine's thread, in this order and before any later
// call: nobody waits for them.
class BuiltInState final : public TrackState {
 public:
  // The engine's thread's own.
  struct Kept {
    memory::Sequence sequence;  // Of the conversation's tokens, or of the first of them.
    sample::SamplerState sampler;
  };

  explicit BuiltInState(session::Service* service)
      : service_(service), kept_(std::make_unique<Kept>()) {}
  // What cannot be given back on the engine's thread stays.
  ~BuiltInState() override {
    Kept* const last = kept_.release();
    (void)try_surely([&] { service_->post([last](Engine&) { delete last; }); });
  }
  BuiltInState(const BuiltInState&) = delete;
  BuiltInState& operator=(const BuiltInState&) = delete;

  Kept* kept() const { return kept_.get(); }

 private:
  session::Service* service_;
  std::unique_ptr<Kept> kept_;
};

const BuiltInState::Kept* kept_in(const TrackState* state) {
  return state == nullptr ? nullptr : static_cast<const BuiltInState*>(state)->kept();
}

class BuiltInTrack final : public Track {
 public:
  BuiltInTrack(session::Service* service, Mailbox* mailbox) : service_(service), mailbox_(mailbox) {
    service_->ask([this](Engine& engine) {
      timeline_ = std::make_unique<Timeline>(&engine, &service_->drafting());
    });
  }
  // What cannot be given back on the engine's thread stays.
  ~BuiltInTrack() override {
    const bool is_done = try_surely([this] {
      service_->ask([this](Engine&) {
        timeline_->clear();
        timeline_.reset();
      });
    });
    if (!is_done) (void)timeline_.release();
  }
  BuiltInTrack(const BuiltInTrack&) = delete;
  BuiltInTrack& operator=(const BuiltInTrack&) = delete;

  cairn_plan plan(std::span<const Token> tokens) override {
    memory::ResumePlan plan;
    ask([&](Timeline& timeline) { plan = timeline.lane().plan_reading(tokens); });
    return plan_of(plan);
  }
  Answer read(std::span<const Token> tokens, const TrackState* from, cairn_plan& done) override {
    const BuiltInState::Kept* const kept = kept_in(from);
    memory::ResumePlan plan;
    Answer answer = run(std::make_unique<ReadJob>(
        timeline_.get(), mailbox_, tokens, kept == nullptr ? nullptr : &kept->sequence, &plan));
    if (answer.status == CAIRN_OK) done = plan_of(plan);
    return answer;
  }
  Answer make(MakeOrder order) override {
    return run(std::make_unique<MakeJob>(timeline_.get(), mailbox_, std::move(order), handle_));
  }
  void start(MakeOrder order) override {
    submit(std::make_unique<MakeJob>(timeline_.get(), mailbox_, std::move(order), handle_), true);
  }
  bool cancel() noexcept override {
    try {
      service_->cancel(job_);
      return true;
    } catch (...) {
      return false;
    }
  }

  bool stands_at(size_t token_count) override {
    bool is_there = false;
    ask([&](Timeline& timeline) { is_there = timeline.stands_at(token_count); });
    return is_there;
  }
  void copy_logits(std::vector<float>& row) override {
    ask([&](Timeline& timeline) {
      const std::span<const float> logits = timeline.lane().logits();
      row.assign(logits.begin(), logits.end());
    });
  }
  bool has_choice() override {
    bool has_choice = false;
    ask([&](Timeline& timeline) { has_choice = timeline.maker().has_choice(); });
    return has_choice;
  }
  sample::SamplerState sampler() override {
    sample::SamplerState state;
    ask([&](Timeline& timeline) { state = timeline.maker().sampler(); });
    return state;
  }
  void set_sampler(sample::SamplerState sampler) override {
    ask([&](Timeline& timeline) { timeline.maker().set_sampler(std::move(sampler)); });
  }
  void drop_answer() override {
    ask([](Timeline& timeline) { timeline.maker().drop(); });
  }
  void reset() override {
    ask([](Timeline& timeline) {
      timeline.maker().drop();
      timeline.maker().drop_receipt();
      timeline.maker().set_sampler({});
      timeline.clear();
    });
  }
  std::shared_ptr<const session::Receipt> receipt() override {
    std::shared_ptr<const session::Receipt> found;
    ask([&](Timeline& timeline) { found = timeline.maker().receipt(); });
    return found;
  }

  Result<std::unique_ptr<TrackState>> snapshot(std::span<const Token> /*tokens*/) override {
    auto made = std::make_unique<BuiltInState>(service_);
    service_->post([timeline = timeline_.get(), kept = made->kept()](Engine&) {
      kept->sequence = timeline->lane().sequence();
      kept->sampler = timeline->maker().sampler();
    });
    return std::unique_ptr<TrackState>(std::move(made));
  }
  Status go_to(const TrackState& state) override {
    ask([&](Timeline& timeline) {
      timeline.go_to(kept_in(&state)->sequence);
      timeline.maker().set_sampler(kept_in(&state)->sampler);
    });
    return Ok{};
  }
  Answer save(const std::string& name) override {
    Status saved = Ok{};
    ask([&](Timeline& timeline) {
      Engine& engine = timeline.engine();
      const Fingerprint fingerprint = engine.fingerprint(timeline.lane().selection());
      saved = engine.sequence_store()->save(name, timeline.lane().sequence(), fingerprint.digest(),
                                            timeline.maker().sampler());
    });
    return saved;
  }
  Answer find_saved(const std::string& name, std::vector<Token>& tokens,
                    sample::SamplerState& sampler) override {
    Status restored = Ok{};
    ask([&](Timeline& timeline) {
      Engine& engine = timeline.engine();
      const Selection& selection = timeline.lane().selection();
      Result<SequenceStore::Restored> found =
          engine.sequence_store()->restore(name, engine.fingerprint(selection).digest(), selection);
      if (!found) {
        restored = std::move(found).error();
        return;
      }
      tokens = std::move(found->tokens);
      sampler = std::move(found->sampler);
    });
    if (!restored && restored.error().code == ErrorCode::unsupported) {
      return {CAIRN_E_MISMATCH, restored.error().message};
    }
    return restored;
  }

 private:
  void ask(const std::function<void(Timeline&)>& question) {
    service_->ask([&](Engine&) { question(*timeline_); });
  }

  // Where there is no memory to submit it, it has ended.
  void submit(std::unique_ptr<Job> job, bool is_background) {
    struct Undo {
      Mailbox* mailbox;
      ~Undo() {
        if (mailbox != nullptr) mailbox->end({}, false);
      }
    };
    JobTerms terms{.client = std::to_string(handle_)};
    mailbox_->begin(is_background);
    Undo undo{mailbox_};
    job_ = service_->submit(std::move(job), std::move(terms));
    undo.mailbox = nullptr;
  }

  // Submits a job and waits for its end.
  Answer run(std::unique_ptr<Job> job) {
    submit(std::move(job), false);
    bool is_cancelled = false;
    while (!mailbox_->wait_for_end(kLookAtMark)) {
      if (is_cancelled || !handles::has_mark(handle_)) continue;
      is_cancelled = cancel();
    }
    return mailbox_->take_outcome();
  }

  session::Service* service_;
  Mailbox* mailbox_;
  std::unique_ptr<Timeline> timeline_;  // The engine's thread's own.
  JobId job_{-1};                       // That which was submitted last.
};

uint32_t capabilities_of(const EngineObject::Traits& traits) {
  if (traits.makes_vectors) return CAIRN_CAP_EMBED;
  uint32_t all = CAIRN_CAP_LOGITS | CAIRN_CAP_REWIND | CAIRN_CAP_SNAPSHOT;
  if (traits.text->tokenizer() != nullptr) all |= CAIRN_CAP_TEXT;
  if (traits.has_store) all |= CAIRN_CAP_SAVE;
  return all;
}

}  // namespace

Result<std::shared_ptr<BuiltInEngine>> BuiltInEngine::start(std::unique_ptr<Engine> engine,
                                                            const SchedulerOptions& options) {
  std::shared_ptr<BuiltInEngine> made(new BuiltInEngine(std::move(engine)));
  CAIRN_TRY(made->service_, session::Service::start(made->engine_.get(), options));
  return made;
}

BuiltInEngine::BuiltInEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {
  traits_ = {.fields = &engine_->file().fields(),
             .text = &engine_->text(),
             .vocabulary_count = engine_->size().vocabulary_count,
             .context_tokens = engine_->options().context_tokens,
             .makes_vectors = engine_->options().pooling.has_value(),
             .has_store = engine_->sequence_store() != nullptr,
             .keeps_receipts = true,
             .backend = "cairn"};
}

cairn_engine_facts BuiltInEngine::facts() {
  const bool is_exact = engine_->numerics() == Numerics::exact_1;
  return {
      .struct_size = 0,
      .capabilities = capabilities_of(traits_),
      .exactness = is_exact ? CAIRN_EXACT_BITWISE : CAIRN_EXACT_REPLAY,
      .context_tokens = uint32_t(traits_.context_tokens),
      .vocabulary_count = uint32_t(traits_.vocabulary_count),
      .vector_floats = traits_.makes_vectors ? uint32_t(Embedder(engine_.get(), {}).width()) : 0,
      .backend = traits_.backend.data(),
      .numerics = name(engine_->numerics()).data(),
      .native_capabilities = capabilities_of(traits_),
      .reserved = 0};
}

cairn_memory BuiltInEngine::memory() {
  memory::Usage usage;
  service_->ask([&](Engine& engine) { usage = engine.memory().usage(); });
  const FixedBytes& fixed = engine_->fixed_bytes();
  return {.struct_size = 0,
          .snapshots = snapshot_count,
          .budget = usage.budget_bytes,
          .pages = usage.page_bytes,
          .states = usage.state_bytes,
          .hidden = usage.hidden_bytes,
          .logs = usage.log_bytes,
          .warm = usage.warm_bytes,
          .weights = fixed.weights,
          .scratch = fixed.plans + fixed.workspace + usage.other_bytes};
}

cairn_plan BuiltInEngine::plan_prompt(std::span<const Token> tokens) {
  memory::ResumePlan plan;
  service_->ask([&](Engine& engine) { plan = Lane(&engine).plan_reading(tokens); });
  return plan_of(plan);
}

Result<session::PromptProbabilities> BuiltInEngine::score(std::vector<Token> tokens) {
  return service_->score(std::move(tokens)).get();
}

Result<std::unique_ptr<Track>> BuiltInEngine::open_track(Mailbox* mailbox) {
  return std::unique_ptr<Track>(std::make_unique<BuiltInTrack>(service_.get(), mailbox));
}

Result<std::vector<float>> BuiltInEngine::embed(std::vector<Token> tokens) {
  CAIRN_TRY(std::vector<Embedding> made, service_->embed({std::move(tokens)}).get());
  return std::move(made.front().values);
}

}  // namespace cairn::capi
