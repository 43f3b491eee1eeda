// A model that a runtime has loaded, and the thread of what is made in the background.
#include "capi/runtime_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/threads/start_thread.h"
#include "capi/runtime_track.h"
#include "runtimes/timeline.h"
#include "sample/log_probabilities.h"

namespace cairn::capi {

namespace {

// Where nobody takes the events of all tasks.
constexpr std::chrono::milliseconds kLookAgain(2);

uint32_t native_capabilities_of(uint32_t capabilities) {
  uint32_t all = CAIRN_CAP_LOGITS;
  if ((capabilities & runtimes::kRewinds) != 0) all |= CAIRN_CAP_REWIND;
  if ((capabilities & runtimes::kSnapshots) != 0) all |= CAIRN_CAP_SNAPSHOT;
  return all;
}

}  // namespace

Result<std::shared_ptr<RuntimeEngine>> RuntimeEngine::open(
    std::shared_ptr<ModelObject> model, const runtimes::RuntimeType& type,
    const runtimes::RuntimeOptions& options) {
  CAIRN_TRY(std::unique_ptr<runtimes::LoadedRuntime> runtime,
            type.load({.path = model->path, .file = &model->file}, options));
  const tokenize::Tokenizer* const tokenizer = model->text->tokenizer();
  if (tokenizer != nullptr && size_t(runtime->vocabulary_count()) < tokenizer->token_count()) {
    return fail(ErrorCode::unsupported, "{}: expected logits of {} tokens, found {}", type.name,
                tokenizer->token_count(), runtime->vocabulary_count());
  }
  std::shared_ptr<RuntimeEngine> made(new RuntimeEngine(std::move(model), std::move(runtime)));
  made->traits_.backend = type.name;
  CAIRN_TRY(made->turns_, Turnstile::open());
  CAIRN_TRY(made->thread_,
            start_thread("the engine's thread", [engine = made.get()] { engine->run(); }));
  return made;
}

RuntimeEngine::RuntimeEngine(std::shared_ptr<ModelObject> model,
                             std::unique_ptr<runtimes::LoadedRuntime> runtime)
    : model_(std::move(model)), runtime_(std::move(runtime)) {
  traits_ = {.fields = &model_->file.fields(),
             .text = model_->text.get(),
             .vocabulary_count = runtime_->vocabulary_count(),
             .context_tokens = runtime_->context_tokens(),
             .backend = {}};
}

RuntimeEngine::~RuntimeEngine() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void RuntimeEngine::add(Task* task, FunctionRef<void()> begin) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(task);
  begin();
  changed_.notify_all();
}

// The lock is not held while a task goes on; meanwhile tasks are only added behind the others.
void RuntimeEngine::run() {
  std::unique_lock lock(mutex_);
  size_t next = 0, blocked_count = 0;
  for (;;) {
    changed_.wait(lock, [this] { return is_stopping_ || !tasks_.empty(); });
    if (is_stopping_) return;
    next %= tasks_.size();
    Task* const task = tasks_[next];
    lock.unlock();
    const Progress progress = task->go_on();
    lock.lock();
    blocked_count = progress == Progress::blocked ? blocked_count + 1 : 0;
    if (progress == Progress::ended) {
      tasks_.erase(tasks_.begin() + std::ptrdiff_t(next));
    } else {
      ++next;
    }
    if (blocked_count > 0 && blocked_count >= tasks_.size()) {
      changed_.wait_for(lock, kLookAgain);
      blocked_count = 0;
    }
  }
}

cairn_engine_facts RuntimeEngine::facts() {
  const runtimes::Claims& claims = runtime_->claims();
  uint32_t offered = CAIRN_CAP_LOGITS | CAIRN_CAP_REWIND | CAIRN_CAP_SNAPSHOT;
  if (tokenizer() != nullptr) offered |= CAIRN_CAP_TEXT;
  return {.struct_size = 0,
          .capabilities = offered,
          .exactness = int32_t(claims.exactness),
          .context_tokens = uint32_t(traits_.context_tokens),
          .vocabulary_count = uint32_t(traits_.vocabulary_count),
          .vector_floats = 0,
          .backend = traits_.backend.data(),
          .numerics = claims.numerics.data(),
          .native_capabilities = native_capabilities_of(claims.capabilities),
          .reserved = 0};
}
static_assert(int32_t(runtimes::Exactness::none) == CAIRN_EXACT_NONE &&
              int32_t(runtimes::Exactness::replay) == CAIRN_EXACT_REPLAY &&
              int32_t(runtimes::Exactness::bitwise) == CAIRN_EXACT_BITWISE);

cairn_memory RuntimeEngine::memory() {
  const Turn turn(turns_.get());
  cairn_memory memory{};
  memory.snapshots = snapshot_count;
  memory.weights = runtime_->weight_bytes();
  return memory;
}

cairn_plan RuntimeEngine::plan_prompt(std::span<const Token> tokens) {
  cairn_plan plan{};
  plan.target = plan.forward_tokens = uint32_t(tokens.size());
  return plan;
}

// Runtimes give the logits behind a chunk alone, so each token is one.
Result<session::PromptProbabilities> RuntimeEngine::score(std::vector<Token> tokens) {
  if (tokens.size() > size_t(traits_.context_tokens)) {
    return fail(ErrorCode::context_full, "context: {} tokens are needed, {} fit", tokens.size(),
                traits_.context_tokens);
  }
  const Turn turn(turns_.get());
  session::PromptProbabilities made;
  made.reserve(tokens.size());
  CAIRN_TRY(const std::unique_ptr<runtimes::RuntimeSession> session, runtime_->open_session());
  for (size_t index = 0; index + 1 < tokens.size(); ++index) {
    CAIRN_TRY(const std::span<const float> row, session->append(std::span(&tokens[index], 1)));
    made.push_back(sample::log_probabilities(row, tokens[index + 1], 1));
  }
  return made;
}

Result<std::unique_ptr<Track>> RuntimeEngine::open_track(Mailbox* mailbox) {
  return open_runtime_track(this, mailbox);
}

Result<std::vector<float>> RuntimeEngine::embed(std::vector<Token> /*tokens*/) {
  return fail(ErrorCode::unsupported, "vectors: expected the backend cairn, found {}",
              traits_.backend);
}

}  // namespace cairn::capi
