// When updated states are stored past the caches (non-temporal stores). A decoded token updates all
// states of a model once, and reads all weights before the next update: by then no cache has the
// states.
#pragma once

#include <cstdint>

#include "backends/cpu/ops_kernels.h"

namespace cairn::cpu {

// Whether all rows of a state, `width` floats each, begin where a line of the caches does.
inline bool may_stream(const float* state, int32_t width) {
  return reinterpret_cast<uintptr_t>(state) % kLineBytes == 0 &&
         size_t(width) * sizeof(float) % kLineBytes == 0;
}

// Prefetches the first kAheadFloats of a state that is read next; the kernel prefetches the rest.
inline void fetch_first(const float* state) {
  constexpr size_t kLineFloats = kLineBytes / sizeof(float);
  for (size_t i = 0; i < kAheadFloats; i += kLineFloats) __builtin_prefetch(state + i);
}

}  // namespace cairn::cpu
