// The report of a model's speed: the machine's limits, the start, then
// prompts and decoding. Knows no options, no tables. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "engine/engine.h"
#include "measure/machine_limits.h"
#include "measure/speed_samples.h"

namespace cairn::measure {

struct SpeedReport {
  std::string architecture;
  int64_t parameter_count = 0;
  uint64_t resident_bytes = 0;  // After the first token.
  EngineOptions options;        // As they took effect.
  MachineLimits limits;
  double load_seconds = 0;
  double first_token_seconds = 0;  // From the beginning of loading.
  std::vector<SpeedRow> rows;      // Of measure_speed(), which comes afterwards.
};

// Of the threads and the instruction set that an engine of these options will use.
Result<MachineLimits> limits_for(const EngineOptions& options);

// All but the rows. The machine first, while nothing else is in memory; then what `load` loads,
// which has to live on. Errors: those of `load`, memory_full.
Result<SpeedReport> measure_start(const EngineOptions& options,
                                  FunctionRef<Result<Engine*>()> load);

}  // namespace cairn::measure
