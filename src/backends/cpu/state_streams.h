// When a state that was moved on goes past the caches to memory. A decoded token moves all states
// of a model once, and reads all its weights before it does so again: by then no cache has them.
#pragma once

#include <cstdint>

#include "backends/cpu/ops_kernels.h"

namespace cairn::cpu {

// Whether all rows of a state, `width` floats each, begin where a line of the caches does.
inline bool may_stream(const float* state, int32_t width) {
  return reinterpret_cast<uintptr_t>(state) % kLineBytes == 0 &&
         size_t(width) * sizeof(float) % kLineBytes == 0;
}

}  // namespace cairn::cpu
