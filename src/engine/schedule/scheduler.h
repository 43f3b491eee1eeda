// Decides whose rows are computed in a step, and computes it: continuous batching. Rows that
// continue answers come first; rows of prompts fill the step up to a target of time. Jobs that want
// the same prefix wait until one of them has computed it. Where memory is short, a job that began
// later gives up its pages, which the prefix cache keeps as long as it can, and goes on later;
// tenants have shares of it. No bit depends on any of this. docs/scheduling.md has the rules. Not
// thread-safe: the engine's thread owns it. Must not outlive its engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/schedule/draft_rows.h"
#include "engine/schedule/job.h"
#include "engine/schedule/scheduled_job.h"
#include "engine/schedule/step_time.h"
#include "engine/schedule/tenant_rules.h"

namespace cairn {

// Seconds are of steps, tokens and rows of all jobs.
struct SchedulerOptions {
  double step_seconds = 0.050;  // The target while somebody waits for an answer's next token.
  // The target while nobody does: longer steps read prompts a little faster.
  double quiet_step_seconds = 0.5;
  int32_t running_max = 64;    // Jobs that have memory at a time.
  int32_t waiting_max = 1024;  // Jobs that wait; more are refused.
  // A prefix of fewer tokens is computed again rather than waited for.
  int32_t shared_tokens_min = 32;
  bool checks_all_drafts = false;  // Whatever they are worth: to find out what they change.
};

struct SchedulerStats {
  int32_t running = 0, waiting = 0;
  int64_t steps = 0;
  int64_t decode_rows = 0;  // Computed, each of another sequence; without drafts.
  int64_t draft_rows = 0;   // Computed beside them, for drafts that were right or not.
  int64_t drafts = 0, accepted_drafts = 0;  // These; and their tokens that were right.
  int64_t prompt_rows = 0;                  // Computed, those of jobs that were preempted included.
  int64_t idle_rows = 0;                    // Computed for idle jobs; not in the others.
  int64_t own_tokens = 0;                   // Of jobs without a lane that are not idle.
  int64_t replayed_rows = 0;                // Recurrence steps, which read no weights.
  int64_t preemptions = 0;
  int64_t shared_waits = 0;     // Times that a job waited for a prefix that another one computed.
  int64_t stored_prefixes = 0;  // Jobs that found more of their prompt in the store than in memory.
};

class Scheduler {
 public:
  explicit Scheduler(Engine* engine, const SchedulerOptions& options = {});
  ~Scheduler();

  // From now on each of these tenants has its part of the queue, of the places of jobs that run,
  // and of memory. REQUIRES: jobs of different tenants are of different clients, and the reverse.
  void set_tenants(const TenantShares& shares);
  // Queues the job; ends it with the error no_room where too many wait. Ids of jobs ascend.
  void submit(JobId id, std::unique_ptr<Job> job, JobTerms terms);
  // Ends the job with this error, wherever it is; what it has computed goes to the prefix cache.
  // Whether it was there.
  bool cancel(JobId id, Error why);

  // Asked often while a step is computed, by the thread that steps: whether this job is about to be
  // cancelled. A step, all of whose jobs are, is given up.
  void ask_meanwhile(std::function<bool(JobId)> is_unwanted) {
    is_unwanted_ = std::move(is_unwanted);
  }

  // Memory that a cancelled job's look-up in the store still holds counts as well.
  bool has_work() const;
  // One step; where the jobs only wait for the disk, some milliseconds of that. An error of a job
  // ends that job and no other. False where nothing could be done: the jobs are blocked, or wait
  // for those that are.
  bool step();

  SchedulerStats stats() const;
  // Jobs that have tokens in memory, seniors first. Valid until the next call of anything else.
  struct Running {
    JobId id{-1};
    bool is_reading = false;  // Its prompt; else it makes an answer.
    const memory::Sequence* sequence = nullptr;
  };
  std::vector<Running> running() const;

 private:
  using Clock = JobTerms::Clock;
  using Phase = ScheduledJob::Phase;
  // What a job computes in a step.
  struct Share {
    ScheduledJob* job = nullptr;
    int32_t row_count = 0;
    bool is_prompt = false;
  };

  void expire();
  bool admit();
  bool try_start(ScheduledJob& job);
  bool waits_for_prefix(ScheduledJob& job);
  int32_t shared_prefix(const ScheduledJob& running, const ScheduledJob& waiting,
                        std::span<const Token> prompt) const;
  bool make_room(const ScheduledJob& job, size_t bytes, int32_t& running_count,
                 int32_t reading_count);
  void hold_up(const ScheduledJob& job);
  bool is_held_up(const ScheduledJob& job) const;
  bool follows_kin(const Share& share) const;
  bool is_stalled_beside(const ScheduledJob& job, const ScheduledJob& other) const;
  void plan(ScheduledJob& job);
  void set_plan(ScheduledJob& job, const memory::ResumePlan& plan);
  StoredPrefix::Stage look_in_store(ScheduledJob& job);
  void read_stored(ScheduledJob& job);
  bool give_up_reading(ScheduledJob& job);
  bool wait_for_disk();
  bool does_memory_come_back() const;
  size_t evictable_bytes(const ScheduledJob& job) const;
  bool has_room(const ScheduledJob& job, size_t bytes) const;
  int64_t spare_bytes(const ScheduledJob& job) const;
  size_t promised_bytes(const ScheduledJob& beside) const;
  void choose_rows();
  int32_t rows_beside_answers(int32_t free_rows) const;
  int32_t choose_answers(int32_t free_rows);
  void choose_drafts();
  int32_t take_outputs(ScheduledJob& job, const StepOutputs& outputs);
  void compute();
  void count_step(const StepReport& report, double seconds);
  bool preempt_junior(const ScheduledJob& than);
  bool preempt_yielding(const ScheduledJob& to, bool spares, bool only_kin = false);
  bool others_have_memory(const ScheduledJob& than) const;
  bool forget_cached(const ScheduledJob& job);
  void preempt(ScheduledJob& job);
  void put_back(ScheduledJob& job);
  void choose_tokens(std::span<const size_t> items);
  bool settle();
  bool go_on(ScheduledJob& job);
  void end(ScheduledJob& job, Status status);
  void forget_ended();
  void trace_begin(ScheduledJob& job);
  void trace_phase(ScheduledJob& job, Phase phase);
  bool goes_first(const ScheduledJob& a, const ScheduledJob& b) const;

  Engine* engine_;
  SchedulerOptions options_;
  std::function<bool(JobId)> is_unwanted_;  // None: nobody is asked.
  ScheduledJobs jobs_;                      // Seniors first: by priority, then by arrival.
  ClientList clients_;
  TenantRules tenants_;
  StepTime step_time_;
  DraftRows draft_rows_;
  SchedulerStats stats_;
  int64_t turn_count_ = 0;
  int64_t memory_epoch_ = 0;  // Grows when memory may have become free, or a prefix known.
  // Of the step that is being made; their capacity stays.
  std::vector<ScheduledJob*> queue_, answering_;
  std::vector<Share> shares_;
  std::vector<StepItem> items_;  // By share.
  std::vector<ScheduledJob*> choosing_;
  std::vector<const Client*> held_up_;  // Those of whom somebody waits for memory or a place.
  bool are_all_held_up_ = false;
  size_t computed_count_ = 0;  // Of the shares, from the first.
  int32_t decode_rows_ = 0, prompt_rows_ = 0;
  bool waits_for_disk_ = false;  // Some job does.
};

}  // namespace cairn
