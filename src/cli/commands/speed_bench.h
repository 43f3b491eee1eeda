// `cairn bench MODEL`: tokens per second of a model on this machine, beside what the machine could
// do at best; as a table or as JSON.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "measure/speed_samples.h"

namespace cairn::cli {

struct SpeedBenchArguments {
  std::string model_path;
  measure::SpeedWork work;
  bool json = false;
  EngineOptions engine;
};

// Prints; returns the exit code. Errors: invalid_argument, of what there is to measure; those of
// loading; memory_full; cancelled.
Result<int> bench_speed(SpeedBenchArguments arguments);

}  // namespace cairn::cli
