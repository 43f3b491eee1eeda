// Another runtime as an engine: callers' threads compute on it, one at a time, and answers in the
// background are made by a thread of its own. Thread-safe, but for its tracks.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "capi/objects.h"
#include "capi/turnstile.h"
#include "runtimes/runtime.h"
#include "session/grammar_cache.h"

namespace cairn::capi {

class RuntimeEngine final : public EngineObject {
 public:
  // What is made in the background, a bit at a time.
  enum class Progress : uint8_t { moved, blocked, ended };
  class Task {
   public:
    // Once it has ended, it is gone.
    virtual Progress go_on() = 0;

   protected:
    ~Task() = default;
  };

  // Starts two threads. Errors: those of the runtime's load(); unsupported: its vocabulary is
  // smaller than the model's; io: the system gives no thread.
  static Result<std::shared_ptr<RuntimeEngine>> open(std::shared_ptr<ModelObject> model,
                                                     const runtimes::RuntimeType& type,
                                                     const runtimes::RuntimeOptions& options);
  ~RuntimeEngine() override;

  Turnstile& turns() { return *turns_; }
  runtimes::LoadedRuntime& runtime() { return *runtime_; }  // In a turn.
  // Has it made, once it `begin`s. Throws where there is no memory: then neither is done.
  void add(Task* task, FunctionRef<void()> begin);

  cairn_engine_facts facts() override;
  cairn_memory memory() override;
  session::TenantGrammars grammars() override { return session::TenantGrammars(&grammars_); }
  cairn_plan plan_prompt(std::span<const Token> tokens) override;
  Result<session::PromptProbabilities> score(std::vector<Token> tokens) override;
  Result<std::unique_ptr<Track>> open_track(Mailbox* mailbox) override;
  Result<std::vector<float>> embed(std::vector<Token> tokens) override;

 private:
  RuntimeEngine(std::shared_ptr<ModelObject> model,
                std::unique_ptr<runtimes::LoadedRuntime> runtime);
  void run();

  std::shared_ptr<ModelObject> model_;
  std::unique_ptr<runtimes::LoadedRuntime> runtime_;
  std::unique_ptr<Turnstile> turns_;
  session::GrammarCache grammars_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task*> tasks_;
  bool is_stopping_ = false;
  std::thread thread_;  // Makes the tasks, in turn.
};

}  // namespace cairn::capi
