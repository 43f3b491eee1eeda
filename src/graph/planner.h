// Makes a plan of recorded ops: which of them run in parallel, and at which workspace offset each
// value is stored. Knows nothing of models; device/op_fields.h lists what each op reads and writes.
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
  bool quantized = false;       // Laid out as QuantizedRows of `width` values,
  bool rounds_prompts = false;  // with room for what Backend::rounds_prompts() says.
  RowSet set = RowSet::tokens;
};

// How many rows a plan must have room for.
struct PlanLimits {
  int32_t row_count_max = 0;
  int32_t output_count_max = 0;
};

// The values that callers exchange with a plan.
struct PlanOutputs {
  Tensor hidden;  // An input of the head, an output of a step; stays readable.
  Tensor logits;  // Likewise.
};

// `ops` in the order in which they were recorded, with values named as graph/reference.h says.
Plan make_plan(std::vector<Op> ops, const std::vector<Value>& values, const PlanOutputs& outputs,
               const PlanLimits& limits, const PieceAlignment& alignment);

}  // namespace cairn
