// Makes a plan of recorded ops: which of them run side by side, and where values lie in the
// workspace. Knows nothing of models; the ops say themselves what they read and write.
// Thread-safe: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "device/plan.h"
#include "graph/tensor.h"

namespace cairn {

// A value of a graph: rows of f32, or of numbers quantized for the integer product.
struct Value {
  int32_t width = 0;
  bool quantized = false;  // Laid out as QuantizedRows of `width` values.
  RowSet set = RowSet::tokens;
};

// How many rows a plan must have room for.
struct PlanLimits {
  int32_t row_count_max = 0;
  int32_t output_count_max = 0;
};

// What stands at the ends of a plan.
struct PlanEnds {
  Tensor hidden;  // There before the first op or after one; readable up to the end.
  Tensor logits;  // Likewise.
};

// `ops` in the order in which they were recorded, with values named as graph/reference.h says.
Plan make_plan(std::vector<Op> ops, const std::vector<Value>& values, const PlanEnds& ends,
               const PlanLimits& limits, const PieceGrains& grains);

}  // namespace cairn
