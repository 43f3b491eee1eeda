// The limits are those of the threads and the instruction set that the engine will use.
#include "measure/speed_report.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/machine/machine_memory.h"
#include "base/threads/start_thread.h"

namespace cairn::measure {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Result<LimitMeter> LimitMeter::start(const EngineOptions& options) {
  LimitMeter meter;
  meter.isa_ = best_isa(detect_cpu_features());
  Result<IsaLevel> wanted = parse_isa(options.isa);
  if (wanted) meter.isa_ = std::min(meter.isa_, *wanted);
  meter.has_bf16_ = options.numerics == Numerics::fast_1 && detect_cpu_features().avx512_bf16;
  CAIRN_TRY(meter.threads_, ThreadPool::start(options.thread_count > 0 ? options.thread_count
                                                                       : usable_core_count()));
  return meter;
}

Result<MachineLimits> LimitMeter::measure(size_t run_count) {
  MachineLimits limits;
  CAIRN_TRY(std::thread thread, start_thread("the thread that measures the machine", [&] {
              limits = measure_limits(*threads_, isa_, has_bf16_, run_count);
            }));
  thread.join();
  return limits;
}

Result<SpeedReport> measure_start(LimitMeter& limits, FunctionRef<Result<Engine*>()> load) {
  SpeedReport report;
  CAIRN_TRY(report.limits, limits.measure());
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
