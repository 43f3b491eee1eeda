// A weight matrix as ops refer to it: the file's blocks, and the backend's packed form. Does not
// own the blocks, which belong to the mapped file or to the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "quant/quant.h"

namespace cairn {

struct Weight {
  std::string_view name;  // As in the file: "blk.3.attn_q.weight".
  const quant::Type* type = nullptr;
  int32_t cols = 0;                   // Inputs: weights of a row; GGUF's first dimension.
  int32_t rows = 0;                   // Outputs; GGUF's second dimension.
  int32_t count = 1;                  // Matrices (experts); GGUF's third dimension.
  std::span<const std::byte> blocks;  // [count][rows][row_bytes], as in the file.
  std::span<const float> scales;      // [count]: of each matrix's products; empty: ones.
  const void* packed = nullptr;       // The backend's own form, set by Backend::load; may be null.

  bool exists() const { return type != nullptr; }
  float scale_of(int32_t matrix) const { return scales.empty() ? 1.0f : scales[size_t(matrix)]; }
  size_t row_bytes() const { return quant::row_bytes(*type, cols); }
  const std::byte* row(int32_t matrix, int32_t row_index) const {
    return blocks.data() + (size_t(matrix) * size_t(rows) + size_t(row_index)) * row_bytes();
  }
};

}  // namespace cairn
