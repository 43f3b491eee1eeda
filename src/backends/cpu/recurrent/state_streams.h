// When updated states are stored past the caches (non-temporal stores): behind the last rows of a
// slice. A step updates all states of a model once, and the next one reads all weights before it
// updates them again: by then no cache has the states.
#pragma once

#include <cstdint>

#include "backends/cpu/ops_kernels.h"
#include "device/step.h"

namespace cairn::cpu {

// Whether the state behind a capture is the slice's last one, and all of its rows, `width` floats
// each, begin where a line of the caches does.
inline bool goes_past_caches(const Slice& slice, const Capture& capture, const float* state,
                             int32_t width) {
  return capture.row_count == slice.row_count &&
         reinterpret_cast<uintptr_t>(state) % kLineBytes == 0 &&
         size_t(width) * sizeof(float) % kLineBytes == 0;
}

// Prefetches the first kAheadFloats of a state that is read next; the kernel prefetches the rest.
inline void fetch_first(const float* state) {
  constexpr size_t kLineFloats = kLineBytes / sizeof(float);
  for (size_t i = 0; i < kAheadFloats; i += kLineFloats) __builtin_prefetch(state + i);
}

}  // namespace cairn::cpu
