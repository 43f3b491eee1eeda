// The report of a model's speed: the machine's limits, the start, then prompts and decoding. Knows
// no options, no tables. Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "base/function_ref.h"
#include "base/result.h"
#include "base/threads.h"
#include "engine/engine.h"
#include "measure/machine_limits.h"
#include "measure/speed_samples.h"

namespace cairn::measure {

// Measures the machine's limits for threads and the instruction set of an engine, before it is
// loaded and beside it. REQUIRES: started before the engine computes, which pins the thread that
// calls: threads that are started then share its CPU.
class LimitMeter {
 public:
  // Errors: io, the system gives no such threads.
  static Result<LimitMeter> start(const EngineOptions& options);
  // In a thread of its own, which nothing pins for good. Errors: io, there is none.
  Result<MachineLimits> measure(size_t run_count = kThoroughRuns);

 private:
  LimitMeter() = default;

  std::unique_ptr<ThreadPool> threads_;
  IsaLevel isa_ = IsaLevel::scalar;
  bool has_bf16_ = false;  // And floats are multiplied as these.
};

struct SpeedReport {
  std::string architecture;
  int64_t parameter_count = 0;
  uint64_t resident_bytes = 0;  // After the first token.
  EngineOptions options;        // As they took effect.
  MachineLimits limits;         // Before loading; beside the rows they are measured again.
  double load_seconds = 0;
  double first_token_seconds = 0;  // From the beginning of loading.
  std::vector<SpeedRow> rows;      // Of measure_speed(), which comes afterwards.
};

// All but the rows. The machine first, while nothing else is in memory; then what `load` loads,
// which has to live on. Errors: those of `load` and of the meter, memory_full.
Result<SpeedReport> measure_start(LimitMeter& limits, FunctionRef<Result<Engine*>()> load);

}  // namespace cairn::measure
