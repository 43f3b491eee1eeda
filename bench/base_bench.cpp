// What the ground floor costs: barriers and runs of a thread pool, one elementary function, one
// noise word.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/elementary.h"
#include "base/philox.h"
#include "base/threads.h"

namespace cairn {
namespace {

// Time of one barrier that all workers pass, many in one run.
void barrier(benchmark::State& state) {
  constexpr int kBarriers = 1000;
  ThreadPool pool(int(state.range(0)));
  while (state.KeepRunningBatch(kBarriers)) {
    pool.run([&](int worker) {
      for (int i = 0; i < kBarriers; ++i) pool.barrier(worker);
    });
  }
}
BENCHMARK(barrier)->Arg(1)->Arg(2)->Arg(5)->UseRealTime()->Unit(benchmark::kNanosecond);

// Time of an empty run() while the workers still spin.
void run_spinning(benchmark::State& state) {
  ThreadPool pool(int(state.range(0)));
  for (auto _ : state) pool.run([](int) {});
}
BENCHMARK(run_spinning)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kNanosecond);

// Time of an empty run() after the workers went to sleep.
void run_parked(benchmark::State& state) {
  ThreadPool pool(2);
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto start = std::chrono::steady_clock::now();
    pool.run([](int) {});
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(spent.count());
  }
}
BENCHMARK(run_parked)->UseManualTime()->Iterations(300)->Unit(benchmark::kMicrosecond);

// One value at a time, as the reference backend uses the functions.
template <float (*function)(float)>
void scalar(benchmark::State& state) {
  float x = -4;
  for (auto _ : state) {
    benchmark::DoNotOptimize(function(x));
    x = x < 4 ? x + 0.01f : -4.0f;
  }
}
float exp_of(float x) {
  return elementary::exp(x);
}
float silu_of(float x) {
  return elementary::silu(x);
}
float gelu_erf_of(float x) {
  return elementary::gelu_erf(x);
}
BENCHMARK(scalar<exp_of>)->Name("scalar/exp");
BENCHMARK(scalar<silu_of>)->Name("scalar/silu");
BENCHMARK(scalar<gelu_erf_of>)->Name("scalar/gelu_erf");

void philox(benchmark::State& state) {
  PhiloxCounter counter = {0, 1, 2, 3};
  for (auto _ : state) {
    counter = philox4x32(counter, {4, 5});
    benchmark::DoNotOptimize(counter);
  }
}
BENCHMARK(philox);

}  // namespace
}  // namespace cairn

BENCHMARK_MAIN();
