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
  Rows hidden;                 // [outputs, width]: what the logits are made of; may not exist.
  Rows logits;                 // [outputs, vocabulary]; may not exist.
  size_t workspace_bytes = 0;  // For row_count_max and output_count_max rows.
  int32_t row_count_max = 0;   // 0: the plan has no rows for tokens.
  int32_t output_count_max = 0;
};

// The plans of a model. Each has a workspace of its own kind; they may share memory, since they run
// one after another.
struct Plans {
  Plan step;                        // Tokens to logits. Hidden rows stay readable after it.
  Plan head;                        // Hidden rows, put in place by the caller, to logits.
  Plan replay;                      // Logged rows to recurrent states; no ops: none to replay.
  std::vector<int32_t> log_widths;  // By log plane: floats of a row.
  std::vector<std::vector<double>> constants;  // What ops of all plans point to.
};

}  // namespace cairn
