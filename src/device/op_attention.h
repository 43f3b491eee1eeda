// The ops of attention: storing keys and values in pages, and softmax attention over them. A part
// of the closed list of device/op.h, with its rules.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/constant.h"
#include "device/values.h"

namespace cairn::op {

// Encodes each row's keys and values into the pages of its sequence at the row's position.
struct StoreKv {
  Rows k, v;      // [tokens, kv_head_count * dim]; no v where the plane has values in its keys.
  int32_t plane;  // Which of the step's kv planes.
  int32_t kv_head_count = 0;  // If set, rows may be cut at head borders; 0: only whole rows.
};

// Softmax attention of each row over its sequence's positions [first visible, its own position], or
// where it is not causal [first visible, end visible) of its slice, in blocks of 256 positions that
// start at absolute multiples of 256, merged in ascending order. Query head h reads kv head h /
// (head_count / kv_head_count). REQUIRES: it divides; slices that are not causal begin at 0.
struct Attend {
  Rows q;    // [tokens, head_count * key_dim]
  Rows out;  // [tokens, head_count * value_dim]
  int32_t plane;
  int32_t head_count = 0;
  float scale = 1.0f;
  float softcap = 0;      // 0 means none: else s = softcap * tanh(s / softcap).
  int32_t window = 0;     // 0 means all: else positions > own - window are visible, or,
  bool chunked = false;   // if chunked, those of the own chunk of `window` positions.
  bool is_causal = true;  // Else later rows are visible too, and a window is centred.
  Constant sinks;         // [head_count]: attention sinks, one more logit without a value.
  Constant slopes;        // [head_count]: ALiBi, s = fma(slope, -|position - own position|, s).

  int32_t first_visible(int32_t position) const {
    if (window == 0) return 0;
    if (!is_causal) return std::max(0, position - window / 2);
    return chunked ? position / window * window : std::max(0, position + 1 - window);
  }
  // One past the last visible position; `slice_end` is one past the last position of the row's
  // slice.
  int32_t end_visible(int32_t position, int32_t slice_end) const {
    if (is_causal) return position + 1;
    return window == 0 ? slice_end : std::min(slice_end, position + window / 2 + 1);
  }
};

}  // namespace cairn::op
