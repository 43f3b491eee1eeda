// Which ops can be computed piece by piece, and how: some rows and some columns at a time. The
// list that chains are made of. Knows nothing of other ops. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "device/plan.h"

namespace cairn {

struct PieceShape {
  bool exists = false;  // Else the op is computed as a whole.
  RowSet set = RowSet::tokens;
  int32_t width = 0;         // The columns that pieces are cut from.
  int32_t alignment = 0;     // Columns of a piece are a multiple of it; width: only whole rows.
  bool is_producer = false;  // Reads more than its own row: the first of fused ops.
  // The op's Rows and QuantizedRows of which a piece touches its own columns only. Of all others it
  // may read the whole row; a producer may read other rows too.
  std::vector<const void*> aligned;
};

PieceShape piece_shape(const Op& op, const PieceAlignment& alignment);

}  // namespace cairn
