// Cuts a step's rows into blocks that never cross from one sequence to another. Slices are in row
// order; find_block() searches them linearly, which is cheap compared with a block's computation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "device/step.h"

namespace cairn::cpu {

struct SliceBlock {
  const Slice* slice;
  int32_t first_row, row_count;  // Rows of the step.
};

inline int32_t blocks_of(const Slice& slice, int32_t rows_per_block) {
  return (slice.row_count + rows_per_block - 1) / rows_per_block;
}

inline int32_t block_count(const Step& step, int32_t rows_per_block) {
  int32_t count = 0;
  for (const Slice& slice : step.slices) count += blocks_of(slice, rows_per_block);
  return count;
}

// REQUIRES: 0 <= index < block_count(step, rows_per_block).
inline SliceBlock find_block(const Step& step, int32_t rows_per_block, int32_t index) {
  const Slice* slice = step.slices.data();
  for (; index >= blocks_of(*slice, rows_per_block); ++slice) {
    index -= blocks_of(*slice, rows_per_block);
  }
  const int32_t first = index * rows_per_block;
  return {slice, slice->first_row + first, std::min(rows_per_block, slice->row_count - first)};
}

}  // namespace cairn::cpu
