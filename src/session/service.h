// An engine that many use at once: one thread computes; every other one may submit, cancel and ask.
// Owns the scheduler. Thread-safe. Must not outlive its engine, of which nobody else uses more than
// the constant parts meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/schedule/job.h"
#include "engine/schedule/scheduler.h"
#include "session/answer_job.h"
#include "session/answer_stream.h"
#include "session/drafts/drafting.h"
#include "session/embedding_job.h"
#include "session/grammar_cache.h"
#include "session/memory_report.h"
#include "session/memory_watch.h"
#include "session/prompt_pins.h"
#include "session/prompt_probabilities.h"
#include "session/turns.h"

namespace cairn::session {

class Service {
 public:
  // `turns`: those of all engines of the process that compute at the same time; null: there is one.
  // Errors: io, where the system gives no thread.
  static Result<std::unique_ptr<Service>> start(Engine* engine,
                                                const SchedulerOptions& options = {},
                                                std::shared_ptr<Turns> turns = nullptr);
  // Ends all jobs and watches.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const Engine& engine() const { return *engine_; }
  // Jobs that have memory at a time.
  int32_t running_max() const { return running_max_; }
  // For make_matcher() on the threads that ask: of requests with one grammar, one compiles it.
  TenantGrammars grammars(uint64_t tenant = 0) { return TenantGrammars(&grammars_, tenant); }
  GrammarCacheStats grammar_stats() const { return grammars_.stats(); }

  JobId submit(std::unique_ptr<Job> job, JobTerms terms);
  // An answer that has been asked for.
  struct Ticket {
    JobId id;
    std::shared_ptr<AnswerStream> stream;
  };
  Ticket answer(AnswerOrder order, JobTerms terms = {});
  // Vectors of texts, in their order. REQUIRES: those of EmbeddingJob. Errors: Embedder::embed()'s.
  std::future<Result<std::vector<Embedding>>> embed(std::vector<std::vector<Token>> texts,
                                                    const EmbedderOptions& options = {},
                                                    JobTerms terms = {});
  // The same; `done` is called once, on the engine's thread.
  JobId embed(std::vector<std::vector<Token>> texts, const EmbedderOptions& options, JobTerms terms,
              EmbeddingJob::Done done);
  // How likely each token of the text is but the first, by those before it. REQUIRES: those of
  // ScoreJob. Errors: those of Lane::start(); invalid_data, where logits are no numbers.
  std::future<Result<PromptProbabilities>> score(std::vector<Token> text, JobTerms terms = {});
  // Who shares the engine from the next step on; null: nobody does.
  void set_tenants(std::shared_ptr<const TenantShares> tenants);
  // Ends the job with the error `cancelled`, within a step, unless it has ended.
  void cancel(JobId id);
  // Calls `question` on the engine's thread between two steps, and returns when it has returned.
  // REQUIRES: another thread than the engine's.
  void ask(const std::function<void(Engine&)>& question);
  // Has `note` called there before all that is submitted or asked later, and waits for nothing: the
  // engine's thread, where it sleeps, is woken only when many of them wait. What does not hurry.
  void post(std::function<void(Engine&)> note);
  // The engine's thread's own, for jobs of others.
  Drafting& drafting() { return drafting_; }
  SchedulerStats stats();
  // Of this tenant alone; none: of all.
  MemoryReport memory_report(std::optional<uint64_t> tenant = std::nullopt);
  // Reports from now on: one soon, then one after changes, at most every kWatchInterval. As long as
  // somebody has the watch. Null: there are kWatchesMax.
  std::shared_ptr<MemoryWatch> watch_memory(std::optional<uint64_t> tenant = std::nullopt);
  static constexpr size_t kWatchesMax = 16;
  static constexpr std::chrono::milliseconds kWatchInterval{200};

  // Between these, no step is made and the engine is the caller's (BasicLockable, so that
  // std::unique_lock holds it); jobs go on afterwards. By one thread at a time, which does not
  // ask() meanwhile.
  void lock();
  void unlock();

 private:
  struct Submission {
    JobId id;
    std::unique_ptr<Job> job;
    JobTerms terms;
  };

  Service(Engine* engine, const SchedulerOptions& options, std::shared_ptr<Turns> turns);
  void run();
  bool step();
  void audit();
  bool take_mail();
  void lend();
  void wake();
  bool is_watched();
  void tell_watches();

  Engine* engine_;
  int32_t running_max_;
  std::shared_ptr<Turns> turns_;
  GrammarCache grammars_;
  // The engine's thread's own.
  PromptPins pins_;
  Drafting drafting_;
  std::mutex mutex_;
  std::condition_variable mail_;      // Something came for the engine's thread.
  std::condition_variable answered_;  // A question has returned.
  std::vector<Submission> submissions_;
  std::vector<JobId> cancelled_;
  std::atomic<bool> has_cancelled_ = false;  // Asked within steps, where a lock would cost.
  std::shared_ptr<const TenantShares> tenants_;
  bool has_new_tenants_ = false;
  std::vector<const std::function<void(Engine&)>*> questions_;
  std::vector<std::function<void(Engine&)>> notes_;
  int64_t asked_count_ = 0, answered_count_ = 0;
  int64_t job_count_ = 0;
  bool is_stopping_ = false, is_woken_ = false;
  bool is_wanted_ = false;  // Somebody locks the engine.
  bool is_lent_ = false;    // The engine's thread waits until it is unlocked.
  std::vector<std::weak_ptr<MemoryWatch>> watches_;
  std::thread thread_;
  // Destroyed first, but for the reporter: it ends the jobs, whose streams wake this until then.
  Scheduler scheduler_;
  // The engine's thread's own.
  MemoryReporter reporter_;
  bool has_changed_ = false;  // Memory, since the last report; or there is a new watch.
  std::chrono::steady_clock::time_point next_report_;
};

}  // namespace cairn::session
