// Work that shares steps with other work: an answer, a text's vector, reading ahead. A job drives a
// lane; the scheduler decides when the lane's rows are computed. Thread rule: the engine's thread
// makes all calls but for choose().
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "engine/drafted_answer.h"
#include "engine/lane.h"

namespace cairn {

// On what terms a job shares the engine with others.
struct JobTerms {
  using Clock = std::chrono::steady_clock;

  std::string client;    // Computed tokens are shared out evenly between clients, not between jobs.
  int32_t priority = 0;  // Jobs of a higher priority go first, whoever asked for them.
  // Computed only in steps that would otherwise be empty, and counted apart.
  bool is_idle = false;
  std::optional<Clock::time_point> deadline;  // A job that is not done by then has failed.
  // For traces: what the request is known by elsewhere, and when it came.
  std::string request_id = {};
  Clock::time_point asked_at = Clock::now();
};

class Job {
 public:
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  // The lane that it drives; the same at every call. Null: it has none, and each advance() computes
  // a step of its own.
  virtual Lane* lane() = 0;
  // The tokens that such steps have computed so far.
  virtual int64_t own_tokens() const { return 0; }
  // By which variant of the model its lane computes.
  virtual memory::Variant variant() const = 0;
  // The tokens that start() makes the lane read: other jobs' lanes may have them, or be reading
  // them.
  virtual std::span<const Token> prompt() const = 0;
  // Positions of it, as Lane::start() is given them.
  virtual std::span<const int32_t> message_starts() const { return {}; }
  // What start() and reading the prompt cost.
  virtual memory::ResumePlan plan() = 0;
  // start() takes as long as a step: others would notice several. REQUIRES: it is not started.
  virtual bool starts_slowly() const { return false; }
  // Begins to read the prompt. Called once. Errors end the job.
  virtual Status start() = 0;

  // Chooses the token that follows what was computed. Called on any thread, while other jobs do the
  // same; where chooses_alone(), not beside others.
  virtual void choose() {}
  virtual bool chooses_alone() const { return false; }
  // What drafts the tokens of its lane, where that makes an answer's; null: nothing does.
  virtual DraftedAnswer* drafted() { return nullptr; }
  // The lane wants no rows: goes on until it does, or the job is done. Errors end the job.
  virtual Status advance() = 0;
  // What a step of the lane said; an error that the job can bear becomes Ok. Errors end the job.
  virtual Status take_step(Status stepped) { return stepped; }
  virtual bool is_done() const = 0;
  // Whoever receives its results is behind: its lane is not stepped until this is over.
  virtual bool is_blocked() const { return false; }
  // The job is over: done, with its results; or not, with the reason. Called once, last.
  virtual void end(Status status) = 0;
};

}  // namespace cairn
