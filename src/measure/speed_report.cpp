// The limits are those of the threads and the instruction set that the engine will use.
#include "measure/speed_report.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/machine/machine_memory.h"

namespace cairn::measure {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Result<MachineLimits> limits_for(const EngineOptions& options) {
  IsaLevel isa = best_isa(detect_cpu_features());
  Result<IsaLevel> wanted = parse_isa(options.isa);
  if (wanted) isa = std::min(isa, *wanted);
  CAIRN_TRY(
      const std::unique_ptr<ThreadPool> threads,
      ThreadPool::start(options.thread_count > 0 ? options.thread_count : usable_core_count()));
  const bool bf16 = options.numerics == Numerics::fast_1 && detect_cpu_features().avx512_bf16;
  return measure_limits(*threads, isa, bf16);
}

Result<SpeedReport> measure_start(const EngineOptions& options,
                                  FunctionRef<Result<Engine*>()> load) {
  SpeedReport report;
  CAIRN_TRY(report.limits, limits_for(options));
  const Clock::time_point start = Clock::now();
  CAIRN_TRY(Engine* const engine, load());
  report.load_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  CAIRN_TRY(const double one_token, time_one_token(*engine));
  report.first_token_seconds = report.load_seconds + one_token;
  report.resident_bytes = resident_bytes();
  report.architecture = engine->architecture();
  report.parameter_count = engine->parameter_count();
  report.options = engine->options();
  return report;
}

}  // namespace cairn::measure
