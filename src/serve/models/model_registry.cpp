// The table of models, and the thread that loads and unloads them.
#include "serve/models/model_registry.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/process.h"
#include "base/threads/start_thread.h"

namespace cairn::serve {

using std::chrono::milliseconds;

namespace {

// How often a load that waits for room looks whether anybody still wants it.
constexpr milliseconds kLookAgain(200);
// Names that are told of a model that there is not.
constexpr size_t kNamesTold = 20;

}  // namespace

struct ModelRegistry::Entry {
  ModelSource source;
  ModelState state = ModelState::unloaded;
  std::unique_ptr<LoadedModel> loaded;
  const ServedModel* served = nullptr;  // Of `loaded`, or somebody else's.
  size_t counted_bytes = 0;
  int32_t holder_count = 0;
  int64_t last_use = 0;   // A number that grows.
  milliseconds keep{-1};  // When nobody holds it any more.
  Clock::time_point idle_since;
  std::vector<std::weak_ptr<ModelWaiter>> waiting;
  std::vector<FileStamp> checked;  // Of files whose digests are right.
  // What the last load failed by, which it will again unless the files are others.
  std::optional<Error> failure;
  std::vector<FileStamp> failed;
  std::string digest;  // Of the file's identity; empty: nobody has asked.

  bool is_idle() const { return state == ModelState::ready && holder_count == 0; }
  bool has_waiters() {
    std::erase_if(waiting, [](const auto& waiter) { return waiter.expired(); });
    return !waiting.empty();
  }
  bool is_named(std::string_view name) const {
    const auto& aliases = source.aliases;
    return source.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
  }
};

// What handles, requests and the registry's thread share. Functions that take a lock are called
// with it held, and may let go of it for a while.
struct ModelRegistry::Core : std::enable_shared_from_this<ModelRegistry::Core> {
  using Lock = std::unique_lock<std::mutex>;
  using Waiters = std::vector<std::shared_ptr<ModelWaiter>>;

  LoadTerms terms;
  RegistryOptions options;
  std::vector<std::unique_ptr<Entry>> entries;  // Constant once made, but for what is in them.

  mutable std::mutex mutex;
  std::condition_variable changed;  // Something came for the thread, or a model was given back.
  std::deque<Entry*> wanted;        // Are to be loaded, in this order.
  int64_t use_count = 0;
  bool is_stopping = false;
  std::thread thread;

  ModelHandle hold(Entry& entry, bool is_use);
  Listed look(Entry& entry);
  void give_back(Entry& entry, bool is_use);
  void run();
  Entry* next_wanted();
  Entry* next_expired(Clock::time_point now) const;
  void wait(Lock& lock);
  void load(Entry& entry, Lock& lock);
  std::vector<Entry*> stop_leaving();
  Result<std::unique_ptr<LoadedModel>> load_or_fail_again(Entry& entry);
  Result<std::unique_ptr<LoadedModel>> try_load(Entry& entry);
  Result<size_t> make_room(Entry& entry, const FixedBytes& fixed, size_t conversations);
  Result<size_t> share_of(const Entry& entry, const FixedBytes& fixed, size_t conversations) const;
  size_t counted_bytes() const;
  Entry* least_used(bool is_idle) const;
  void tell(Entry& entry, LoadStage stage, int percent);
  Waiters take_waiters(Entry& entry);
  void serve(Entry& entry, Lock& lock);
  void refuse(Entry& entry, const Error& error, Lock& lock);
  void unload(Entry& entry, Lock& lock);
};

ModelHandle ModelRegistry::Core::hold(Entry& entry, bool is_use) {
  ++entry.holder_count;
  if (is_use) {
    entry.last_use = ++use_count;
    entry.keep = options.idle_max;
  }
  return ModelHandle(entry.served, [core = shared_from_this(), &entry, is_use](const auto*) {
    core->give_back(entry, is_use);
  });
}

void ModelRegistry::Core::give_back(Entry& entry, bool is_use) {
  const Lock lock(mutex);
  --entry.holder_count;
  if (is_use) entry.idle_since = Clock::now();
  if (entry.holder_count == 0) changed.notify_all();
}

void ModelRegistry::Core::run() {
  Lock lock(mutex);
  while (!is_stopping) {
    if (Entry* const expired = next_expired(Clock::now())) {
      unload(*expired, lock);
    } else if (Entry* const next = next_wanted()) {
      load(*next, lock);
    } else {
      wait(lock);
    }
  }
}

// Those whose requests have gone away are passed over.
ModelRegistry::Entry* ModelRegistry::Core::next_wanted() {
  while (!wanted.empty()) {
    Entry* const next = wanted.front();
    wanted.pop_front();
    if (next->has_waiters()) return next;
  }
  return nullptr;
}

ModelRegistry::Entry* ModelRegistry::Core::next_expired(Clock::time_point now) const {
  for (const auto& entry : entries) {
    const bool may_go = entry->is_idle() && entry->loaded != nullptr && entry->keep.count() >= 0;
    if (may_go && entry->idle_since + entry->keep <= now) return entry.get();
  }
  return nullptr;
}

// For news, or for the first model that will have been idle for long enough.
void ModelRegistry::Core::wait(Lock& lock) {
  auto first = Clock::time_point::max();
  for (const auto& entry : entries) {
    if (!entry->is_idle() || entry->loaded == nullptr || entry->keep.count() < 0) continue;
    first = std::min(first, entry->idle_since + entry->keep);
  }
  if (first == Clock::time_point::max()) {
    changed.wait(lock);
  } else {
    changed.wait_until(lock, first);
  }
}

void ModelRegistry::Core::load(Entry& entry, Lock& lock) {
  entry.state = ModelState::loading;
  lock.unlock();
  const Clock::time_point begin = Clock::now();
  Result<std::unique_ptr<LoadedModel>> made = load_or_fail_again(entry);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (made) {
    log::info("{}: loaded in {:.1f} s", entry.source.name, seconds);
  } else {
    log::warning("{}: {}", entry.source.name, made.error().message);
  }
  lock.lock();
  // Those that were to make room for it, where another one did: before anybody hears of the load.
  const std::vector<Entry*> staying = stop_leaving();
  if (!made) {
    entry.state = ModelState::unloaded;
    entry.counted_bytes = 0;
    // It was given up since nobody waited, and somebody came meanwhile.
    const bool is_given_up = made.error().code == ErrorCode::cancelled && !is_stopping;
    if (is_given_up && entry.has_waiters()) {
      wanted.push_back(&entry);
    } else {
      refuse(entry, made.error(), lock);
    }
  } else {
    entry.loaded = std::move(made).value();
    entry.served = &entry.loaded->served();
    entry.state = ModelState::ready;
    entry.keep = options.idle_max;
    entry.idle_since = Clock::now();
    serve(entry, lock);
  }
  for (Entry* const other : staying) serve(*other, lock);
}

// REQUIRES: the registry's thread, which is unloading none.
std::vector<ModelRegistry::Entry*> ModelRegistry::Core::stop_leaving() {
  std::vector<Entry*> staying;
  for (const auto& entry : entries) {
    if (entry->state != ModelState::unloading) continue;
    entry->state = ModelState::ready;
    staying.push_back(entry.get());
  }
  return staying;
}

// A digest takes long, and who asks again and again for a wrong file shall not keep the others
// waiting.
Result<std::unique_ptr<LoadedModel>> ModelRegistry::Core::load_or_fail_again(Entry& entry) {
  std::vector<FileStamp> stamps = stamps_of(entry.source);
  if (entry.failure && entry.failed == stamps) return *entry.failure;
  Result<std::unique_ptr<LoadedModel>> made = try_load(entry);
  entry.failure.reset();
  if (!made && made.error().code == ErrorCode::invalid_data) {
    entry.failure = made.error();
    entry.failed = std::move(stamps);
  }
  return made;
}

Result<std::unique_ptr<LoadedModel>> ModelRegistry::Core::try_load(Entry& entry) {
  LoadTerms own = terms;
  // What is free now is less than what will be, when others have made room.
  if (options.budget.bytes > 0) own.engine.memory_room = options.budget;
  own.engine.on_counted = [&](const Counted& counted) {
    return make_room(entry, counted.fixed, counted.conversations);
  };
  // Who waited for it may have gone.
  own.engine.is_given_up = [&] {
    const Lock lock(mutex);
    return is_stopping || !entry.has_waiters();
  };
  // A note for each per cent, so that nobody is woken for less.
  std::pair<LoadStage, int> told{LoadStage::checking, -1};
  const auto progress = [&](LoadStage stage, int percent) {
    if (std::exchange(told, {stage, percent}) != told) tell(entry, stage, percent);
  };
  try {
    return LoadedModel::load(entry.source, own, progress, entry.checked);
  } catch (const std::exception&) {
    return fail(ErrorCode::memory_full, "{}: {}", entry.source.path, exception_text());
  }
}

// What conversations get: as much as was asked for, else a quarter of the budget, so that other
// models have room too, or what this one's weights leave of it.
Result<size_t> ModelRegistry::Core::share_of(const Entry& entry, const FixedBytes& fixed,
                                             size_t conversations) const {
  const size_t budget = options.budget.bytes;
  if (budget == 0) return conversations;
  const size_t asked = terms.engine.memory_budget;
  const size_t left = budget - std::min(budget, fixed.total());
  if (left > 0 && asked <= left) return asked > 0 ? asked : std::min(budget / 4, left);
  return fail(ErrorCode::memory_full,
              "{}: needs {} bytes ({} of weights, {} of steps, {} for conversations), found {} for "
              "all models (limit: {})",
              entry.source.path, fixed.total() + asked, fixed.weights,
              fixed.plans + fixed.workspace, asked, budget, options.budget.limited_by);
}

// First those go that nobody uses; else the one that was used longest ago gets no more requests,
// and goes when its last one is answered.
Result<size_t> ModelRegistry::Core::make_room(Entry& entry, const FixedBytes& fixed,
                                              size_t conversations) {
  CAIRN_TRY(conversations, share_of(entry, fixed, conversations));
  const size_t needed_bytes = fixed.total() + conversations;
  Lock lock(mutex);
  while (options.budget.bytes > 0 && counted_bytes() + needed_bytes > options.budget.bytes) {
    if (is_stopping || !entry.has_waiters()) {
      return fail(ErrorCode::cancelled, "{}: nobody wants it any more", entry.source.path);
    }
    if (Entry* const idle = least_used(true)) {
      unload(*idle, lock);
      continue;
    }
    const auto is_leaving = [](const auto& other) { return other->state == ModelState::unloading; };
    if (std::none_of(entries.begin(), entries.end(), is_leaving)) {
      if (Entry* const busy = least_used(false)) busy->state = ModelState::unloading;
    }
    changed.wait_for(lock, kLookAgain);
  }
  entry.counted_bytes = needed_bytes;
  return conversations;
}

size_t ModelRegistry::Core::counted_bytes() const {
  size_t bytes = 0;
  for (const auto& entry : entries) bytes += entry->counted_bytes;
  return bytes;
}

ModelRegistry::Entry* ModelRegistry::Core::least_used(bool is_idle) const {
  Entry* least = nullptr;
  for (const auto& entry : entries) {
    const bool is_leaving = entry->state == ModelState::unloading;
    if (entry->loaded == nullptr || (is_leaving && !is_idle)) continue;
    if (is_idle && entry->holder_count > 0) continue;
    if (least == nullptr || entry->last_use < least->last_use) least = entry.get();
  }
  return least;
}

// Others wait for this load too.
void ModelRegistry::Core::tell(Entry& entry, LoadStage stage, int percent) {
  const std::string_view word = stage == LoadStage::checking ? "checking" : "loading";
  const std::string note = fmt::format("{} {} %", word, percent);
  std::vector<std::pair<std::shared_ptr<ModelWaiter>, bool>> told;
  {
    const Lock lock(mutex);
    for (const auto& each : entries) {
      for (const auto& weak : each->waiting) {
        if (auto waiter = weak.lock()) told.emplace_back(std::move(waiter), each.get() == &entry);
      }
    }
  }
  for (const auto& [waiter, is_own] : told) {
    waiter->add_progress(is_own ? note : "waiting for another model");
  }
}

ModelRegistry::Core::Waiters ModelRegistry::Core::take_waiters(Entry& entry) {
  Waiters waiters;
  for (const auto& weak : entry.waiting) {
    if (auto waiter = weak.lock()) waiters.push_back(std::move(waiter));
  }
  entry.waiting.clear();
  return waiters;
}

void ModelRegistry::Core::serve(Entry& entry, Lock& lock) {
  Waiters waiters = take_waiters(entry);
  std::vector<ModelHandle> handles;
  for (size_t i = 0; i < waiters.size(); ++i) handles.push_back(hold(entry, true));
  lock.unlock();
  for (size_t i = 0; i < waiters.size(); ++i) waiters[i]->end(std::move(handles[i]));
  waiters.clear();  // The last owners of some, and of the models that these hold.
  lock.lock();
}

namespace {

std::string without_folders(std::string message, const std::string& path) {
  const size_t name = path.rfind('/') + 1;
  const std::string folder = path.substr(0, name);
  if (folder.empty()) return message;
  for (size_t at; (at = message.find(folder)) != std::string::npos;)
    message.erase(at, folder.size());
  return message;
}

}  // namespace

Refusal load_refusal(const ModelSource& source, const Error& error) {
  Refusal refusal{.status = 500,
                  .type = "server_error",
                  .code = "model_load_failed",
                  .message = fmt::format("model {}: {}", source.name,
                                         without_folders(error.message, source.path)),
                  .field = "model"};
  if (error.code == ErrorCode::memory_full) {
    refusal.status = 503;
    refusal.type = "unavailable_error";
    refusal.code = "model_too_large";
    refusal.headers = {{"x-should-retry", "false"}};
  }
  return refusal;
}

void ModelRegistry::Core::refuse(Entry& entry, const Error& error, Lock& lock) {
  Waiters waiters = take_waiters(entry);
  lock.unlock();
  const Refusal refusal = load_refusal(entry.source, error);
  for (const auto& waiter : waiters) waiter->end(refusal);
  waiters.clear();
  lock.lock();
}

void ModelRegistry::Core::unload(Entry& entry, Lock& lock) {
  entry.state = ModelState::unloading;
  std::unique_ptr<LoadedModel> going = std::move(entry.loaded);
  entry.served = nullptr;
  lock.unlock();
  going.reset();
  log::info("{}: unloaded", entry.source.name);
  lock.lock();
  entry.counted_bytes = 0;
  entry.state = ModelState::unloaded;
  if (entry.has_waiters()) wanted.push_back(&entry);
}

ModelRegistry::ModelRegistry(std::shared_ptr<Core> core) : core_(std::move(core)) {}

Result<std::unique_ptr<ModelRegistry>> ModelRegistry::start(std::vector<ModelSource> sources,
                                                            LoadTerms terms,
                                                            const RegistryOptions& options) {
  CHECK(!sources.empty());
  auto core = std::make_shared<Core>();
  core->options = options;
  for (ModelSource& source : sources) {
    auto entry = std::make_unique<Entry>();
    entry->source = std::move(source);
    core->entries.push_back(std::move(entry));
  }
  std::unique_ptr<ModelRegistry> registry(new ModelRegistry(core));
  CAIRN_TRY(registry->sampling_,
            session::effective_sampling(gguf::Fields(), false, terms.sampling));
  core->terms = std::move(terms);
  if (core->terms.turns == nullptr) core->terms.turns = std::make_shared<session::Turns>();
  CAIRN_TRY(core->thread,
            start_thread("the thread that loads models", [core = core.get()] { core->run(); }));
  return registry;
}

std::unique_ptr<ModelRegistry> ModelRegistry::of(ServedModel model) {
  auto core = std::make_shared<Core>();
  auto entry = std::make_unique<Entry>();
  entry->source = {.name = model.name, .path = "", .parts = {}, .digests = {}};
  entry->source.modified = model.created;
  entry->source.card = ModelCard::of(model.engine().file());
  entry->source.card.makes_text = model.makes_text();
  entry->state = ModelState::ready;
  core->entries.push_back(std::move(entry));
  std::unique_ptr<ModelRegistry> registry(new ModelRegistry(core));
  registry->sampling_ = model.sampling;
  registry->only_ = std::make_shared<const ServedModel>(std::move(model));
  core->entries.front()->served = registry->only_.get();
  return registry;
}

ModelRegistry::~ModelRegistry() {
  {
    const std::lock_guard lock(core_->mutex);
    core_->is_stopping = true;
    core_->changed.notify_all();
  }
  if (core_->thread.joinable()) core_->thread.join();
}

Checked<ModelRegistry::Entry*> ModelRegistry::find(std::string_view name) const {
  constexpr std::string_view kLatest = ":latest";
  const std::lock_guard lock(core_->mutex);
  const auto& entries = core_->entries;
  Entry* last = nullptr;
  for (const auto& entry : entries) {
    if (!name.empty() && entry->is_named(name)) return entry.get();
    const bool is_later = last == nullptr || entry->last_use > last->last_use;
    if (entry->state == ModelState::ready && is_later) last = entry.get();
  }
  if (entries.size() == 1) return entries.front().get();
  if (name.empty()) return last != nullptr ? last : entries.front().get();
  if (name.ends_with(kLatest)) {
    const std::string_view plain = name.substr(0, name.size() - kLatest.size());
    for (const auto& entry : entries) {
      if (entry->is_named(plain)) return entry.get();
    }
  }
  std::string known;
  for (size_t i = 0; i < std::min(entries.size(), kNamesTold); ++i) {
    known += (i == 0 ? "" : ", ") + entries[i]->source.name;
  }
  if (entries.size() > kNamesTold) known += fmt::format(" … {} in all", entries.size());
  return Refusal{.status = 404,
                 .type = "not_found_error",
                 .code = "model_not_found",
                 .message = fmt::format("model: expected one of {}, found \"{}\"", known, name),
                 .field = "model"};
}

ModelHandle ModelRegistry::ready(Entry* entry, bool is_use) const {
  if (only_ != nullptr) return only_;
  const std::lock_guard lock(core_->mutex);
  return entry->state == ModelState::ready ? core_->hold(*entry, is_use) : nullptr;
}

ModelHandle ModelRegistry::ask(Entry* entry, const std::shared_ptr<ModelWaiter>& waiter) {
  const std::lock_guard lock(core_->mutex);
  if (entry->state == ModelState::ready) return core_->hold(*entry, true);
  entry->has_waiters();  // Those that have gone are dropped.
  entry->waiting.push_back(waiter);
  if (entry->state == ModelState::unloaded) {
    auto& wanted = core_->wanted;
    if (std::find(wanted.begin(), wanted.end(), entry) == wanted.end()) wanted.push_back(entry);
    core_->changed.notify_all();
  }
  return nullptr;
}

void ModelRegistry::keep_for(const ServedModel& model, milliseconds time) {
  const std::lock_guard lock(core_->mutex);
  for (const auto& entry : core_->entries) {
    if (entry->served == &model) entry->keep = time;
  }
  core_->changed.notify_all();
}

void ModelRegistry::unload(Entry* entry) {
  const std::lock_guard lock(core_->mutex);
  entry->keep = milliseconds(0);
  core_->changed.notify_all();
}

// REQUIRES: the mutex is held.
ModelRegistry::Listed ModelRegistry::Core::look(Entry& entry) {
  Listed one{.entry = &entry,
             .source = &entry.source,
             .state = entry.state,
             .counted_bytes = entry.counted_bytes};
  if (entry.state != ModelState::ready) return one;
  one.stays = entry.keep;
  if (entry.is_idle() && entry.keep.count() >= 0) {
    const auto left = entry.idle_since + entry.keep - Clock::now();
    one.stays = std::max(std::chrono::duration_cast<milliseconds>(left), milliseconds(0));
  }
  one.model = hold(entry, false);
  return one;
}

ModelRegistry::Listed ModelRegistry::look(Entry* entry) const {
  const std::lock_guard lock(core_->mutex);
  return core_->look(*entry);
}

std::vector<ModelRegistry::Listed> ModelRegistry::list() const {
  const std::lock_guard lock(core_->mutex);
  std::vector<Listed> all;
  for (const auto& entry : core_->entries) all.push_back(core_->look(*entry));
  return all;
}

Result<sample::SamplingParams> ModelRegistry::sampling_of(const ModelSource& source,
                                                          const gguf::File& file) const {
  return session::effective_sampling(file.fields(), source.path.empty(), core_->terms.sampling);
}

Result<gguf::File> ModelRegistry::open(const ModelSource& source) const {
  return core_->terms.open(source.path);
}

std::string ModelRegistry::digest_of(const Listed& listed) const {
  Entry& entry = *listed.entry;
  {
    const std::lock_guard lock(core_->mutex);
    if (!entry.digest.empty()) return entry.digest;
  }
  std::string digest;
  if (listed.model != nullptr) {
    digest = hex_of(listed.model->engine().file().identity());
  } else if (Result<gguf::File> file = open(entry.source)) {
    digest = hex_of(file->identity());
  }
  const std::lock_guard lock(core_->mutex);
  return entry.digest = digest;
}

}  // namespace cairn::serve
