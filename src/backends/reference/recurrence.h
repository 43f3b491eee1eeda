// How recurrent ops find their states: the state before a slice, and the captures that they must
// store.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/check.h"
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

// Moves one head's state over a slice: scan_row(row, state) for each of its rows. Walks from
// capture to capture; the next capture's memory is where the state is kept meanwhile, so the state
// before the slice is only read.
template <class ScanRow>
void scan_captures(const Slice& slice, const StateTensor& tensor, int32_t head, size_t head_floats,
                   ScanRow scan_row) {
  const size_t first = size_t(head) * head_floats;
  const float* before = state_before(slice, tensor);
  int32_t row = 0;
  for (const Capture& capture : slice.captures) {
    float* state = captured_state(capture, tensor) + first;
    if (before == nullptr) {
      std::fill_n(state, head_floats, 0.0f);
    } else {
      std::copy_n(before + first, head_floats, state);
    }
    for (; row < capture.row_count; ++row) scan_row(slice.first_row + row, state);
    before = state - first;
  }
  CHECK(row == slice.row_count);
}

}  // namespace cairn::reference
