// A recorded step: ops in order, divided into stages, with one barrier for each stage. Ops of one
// stage do not depend on each other, except for fused ops, which are computed in pieces: a piece
// goes through all of them before the next piece. Recorded once by graph/, then constant.
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

// From which columns on pieces may begin.
struct PieceAlignment {
  int32_t product = 16;  // Of a product's outputs: those whose weights are read together.
  int32_t vector = 16;   // Of other ops: floats of a line of the caches, which no two pieces share.
};

// Fused ops: consecutive ops of a stage. A piece is some rows and the columns [a * alignment, b *
// alignment) of `width`; what an op computes for a piece never depends on what another of these ops
// computes for other pieces. With alignment == width pieces are whole rows, and the ops' own
// columns may differ.
struct FusedOps {
  int32_t first_op = 0;
  int32_t op_count = 0;
  // The first ops: products and recurrences, which read none of the others.
  int32_t producer_count = 0;
  RowSet set = RowSet::tokens;
  int32_t width = 0;
  int32_t alignment = 0;
};

// The columns that an op computes among fused ops.
struct PieceOfOp {
  int32_t first_column = 0;
  int32_t column_count = 0;
};

struct Plan {
  std::vector<Op> ops;
  std::vector<Stage> stages;
  std::vector<FusedOps> fused_ops;  // Of two ops and more, in order.
  std::vector<PieceOfOp> pieces;    // By op; empty if none are fused.
  Rows hidden;                      // [outputs, width]: the head's input; may not exist.
  Rows logits;                      // [outputs, vocabulary]; may not exist.
  size_t workspace_bytes = 0;       // For row_count_max and output_count_max rows.
  int32_t row_count_max = 0;        // 0: the plan has no rows for tokens.
  int32_t output_count_max = 0;
};

// The plans of a model. Each has a workspace of its own kind; they may share memory, since they run
// one after another.
struct Plans {
  Plan step;                        // Tokens to logits. Hidden rows stay readable after it.
  Plan head;                        // Hidden rows, put in place by the caller, to logits.
  Plan replay;                      // Logged rows to recurrent states; no ops: none to replay.
  std::vector<int32_t> log_widths;  // By log plane: floats of a row.
  std::vector<std::vector<double>> constants;  // Constants that the ops point to.
};

}  // namespace cairn
