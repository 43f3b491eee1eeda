// How recurrent ops find their state: what stood before a slice, and the captures they must fill.
#pragma once

#include <cstddef>

#include "device/step.h"

namespace cairn::reference {

// The tensor's state before the slice; null means zeros.
inline const float* state_before(const Slice& slice, const StateTensor& tensor) {
  const std::byte* block = slice.states == nullptr ? nullptr : slice.states[tensor.group];
  return block == nullptr ? nullptr : reinterpret_cast<const float*>(block + tensor.offset);
}

inline float* captured_state(const Capture& capture, const StateTensor& tensor) {
  return reinterpret_cast<float*>(capture.states[tensor.group] + tensor.offset);
}

}  // namespace cairn::reference
