// The offsets of a plan's values in the workspace of a step: rows of f32, or of int8 with scales.
// Plain data.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cairn {

// Which rows of a step a value has: one for each token, or one for each token whose logits are
// wanted.
enum class RowSet : uint8_t { tokens, outputs };

// A value of a plan: [rows, width] of f32 in the step's workspace. A view of some columns of
// another value has that value's stride.
struct Rows {
  int64_t offset = -1;  // Floats from the workspace's start to the first row's first element.
  int32_t stride = 0;   // Floats from one row to the next.
  int32_t width = 0;    // Floats of a row; a multiple of 32 where the rows are quantized.
  RowSet set = RowSet::tokens;

  bool exists() const { return offset >= 0; }
};

// A value quantized for the integer product: a row is `width` int8, then width/32 scales (f32),
// then width/16 sums of 16 consecutive int8 (int32), each part 64-byte aligned. Where a backend
// rounds rows of prompts (Backend::rounds_prompts()), such a row is `width` bf16 instead.
struct QuantizedRows {
  int64_t offset = -1;  // Bytes from the workspace's start to the first row.
  int32_t stride = 0;   // Bytes from one row to the next.
  int32_t width = 0;    // Values of a row, a multiple of 32.
  RowSet set = RowSet::tokens;

  bool exists() const { return offset >= 0; }
  int32_t scales_offset() const { return (width + 63) / 64 * 64; }
  int32_t sums_offset() const { return scales_offset() + (width / 32 * 4 + 63) / 64 * 64; }
  static int32_t row_bytes(int32_t width, bool rounds_prompts) {
    const QuantizedRows rows{.width = width};
    const int32_t bytes = rows.sums_offset() + (width / 16 * 4 + 63) / 64 * 64;
    return rounds_prompts ? std::max(bytes, width * 2) : bytes;
  }
};

}  // namespace cairn
