// Measures what the machine can do at best: memory bandwidth and multiply-adds per second, by
// several threads. Every other figure is compared with it. Knows no kernels of cairn. Thread rule:
// one thread calls; the pool's threads work inside a call.
#pragma once

#include <cstddef>

#include "base/cpu_features.h"
#include "base/threads.h"

namespace cairn::measure {

struct MachineLimits {
  double read_bytes_per_second = 0;  // From huge pages, far more than the caches hold.
  // A multiplication and an addition are two operations. 0: there is no loop for this machine.
  double integer_ops_per_second = 0;  // Products of bytes, summed up in 32 bits.
  double float_ops_per_second = 0;    // f32, fused; or of pairs of bf16, summed up in f32.
};

// So many short runs, of which nearly the best counts: all that there is time for, or as few as say
// something of this moment.
inline constexpr size_t kThoroughRuns = 12, kBriefRuns = 3;

// With `bf16`, floats are multiplied as these. REQUIRES of bf16: the machine has AVX512_BF16.
MachineLimits measure_limits(ThreadPool& threads, IsaLevel isa, bool bf16 = false,
                             size_t run_count = kThoroughRuns);

}  // namespace cairn::measure
