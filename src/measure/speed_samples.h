// Times an engine: prompts read and tokens decoded after a prefix of some length, alone and in
// batches. A prefix is read once; each sample begins with a fork of it, so that all samples of a
// figure start from the same place. Samples of all figures take turns, so that changes in the
// machine's speed affect them alike; and since its limits change with it, each is compared with
// what was measured just before. Knows no files, no tables. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "engine/engine.h"
#include "measure/machine_limits.h"
#include "measure/step_costs.h"

namespace cairn::measure {

struct SpeedWork {
  std::vector<int32_t> prompts;        // Tokens of each prompt that is timed.
  int32_t new_tokens = 0;              // Tokens that each sequence decodes; 0: none.
  std::vector<int32_t> depths = {0};   // Ascending.
  std::vector<int32_t> batches = {1};  // Sequences that decode together.
  bool separate_prompts = false;       // Each sequence of a batch has a past of its own.
  int32_t round_count = 5;
  // Told tokens done and in all, now and then; may return false to stop: the error `cancelled`.
  std::function<bool(int64_t done, int64_t total)> on_progress;
};

// A prompt or a batch at a depth. Speeds count the tokens of all sequences of a batch.
struct SpeedRow {
  int32_t prompt_tokens = 0;  // 0 where it is decoding that was timed, and the other way around.
  int32_t new_tokens = 0;
  int32_t depth = 0;
  int32_t batch = 1;
  std::vector<double> samples;              // Tokens a second.
  std::vector<double> limits;               // What the machine would have allowed, of each.
  std::vector<double> first_token_seconds;  // Of prompts: from its start to its first new token.
  std::vector<StepCosts> steps;             // Of the prompt; or one in the middle of decoding.
  StepCosts costs;                          // All of them together.

  // Medians, each of its own: that of the shares is not the quotient of the others.
  double tokens_per_second() const;
  double limit_tokens_per_second() const;
  double share_of_limit() const;
};

double median(std::vector<double> values);

// What the engine must be able to hold and to do at a time.
int32_t context_tokens(const SpeedWork& work);
int32_t output_count(const SpeedWork& work);

// Rows by depth: first the prompts, then the batches, as they are listed. `limits` is asked before
// each row's part of a round. Errors: those of `limits`, memory_full, cancelled.
using MeasureLimits = FunctionRef<Result<MachineLimits>()>;
Result<std::vector<SpeedRow>> measure_speed(Engine& engine, MeasureLimits limits,
                                            const SpeedWork& work);

// Seconds until the engine has the logits after a prompt of one token.
Result<double> time_one_token(Engine& engine);

}  // namespace cairn::measure
