// A recorded step: ops in order, cut into stages, so that a backend needs one barrier a stage. Ops
// of one stage do not depend on each other, but for those of one chain: they go piece by piece, a
// piece through all of them before the next. Recorded once by graph/, then constant.
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
struct PieceGrains {
  int32_t product = 16;  // Of a product's outputs: those whose weights are read together.
  int32_t vector = 16;   // Of other ops: floats of a line of the caches, which no two pieces share.
};

// Some ops of a stage, one behind the other. A piece is some rows and the columns
// [a * grain, b * grain) of `width`: what an op computes of it depends on nothing that another op
// of the chain computes of other pieces. With grain == width, pieces are whole rows, and the ops'
// own columns need not be the same.
struct Chain {
  int32_t first_op = 0;
  int32_t op_count = 0;
  int32_t leader_count = 0;  // The first ops: products and recurrences, which read no other op's.
  RowSet set = RowSet::tokens;
  int32_t width = 0;
  int32_t grain = 0;
};

// What an op computes in its chain: some of its columns.
struct PieceOfOp {
  int32_t first_column = 0;
  int32_t column_count = 0;
};

struct Plan {
  std::vector<Op> ops;
  std::vector<Stage> stages;
  std::vector<Chain> chains;      // Of two ops and more, in order.
  std::vector<PieceOfOp> pieces;  // By op; empty if there are no chains.
  Rows hidden;                    // [outputs, width]: what the logits are made of; may not exist.
  Rows logits;                    // [outputs, vocabulary]; may not exist.
  size_t workspace_bytes = 0;     // For row_count_max and output_count_max rows.
  int32_t row_count_max = 0;      // 0: the plan has no rows for tokens.
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
