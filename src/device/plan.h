// A recorded step: ops in order, cut into stages. Ops of one stage do not depend on each other, so
// that a backend needs one barrier a stage. Recorded once by graph/, then constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/op.h"

namespace cairn {

struct Stage {
  int32_t first_op = 0;
  int32_t op_count = 0;
};

struct Plan {
  std::vector<Op> ops;
  std::vector<Stage> stages;
  std::vector<std::vector<double>> constants;  // What ops point to and nobody else owns.
  Rows logits;                                 // [outputs, vocabulary]
  size_t workspace_bytes = 0;                  // For row_count_max and output_count_max rows.
  int32_t row_count_max = 0;
  int32_t output_count_max = 0;
};

}  // namespace cairn
