// Assigns recorded ops to stages. An op's stage is one later than the last stage that it depends
// on, unless it can be fused with that stage's ops (device/plan.h: FusedOps). Thread-safe: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "device/plan.h"
#include "graph/pieces.h"

namespace cairn {

struct OpAssignment {
  int32_t fused = 0;
  bool is_producer = false;
  PieceOfOp piece;
};

// One op or several; none after it was merged into another.
struct FusedAssignment {
  int32_t stage = 0;
  PieceShape shape;  // Of all its ops together.
};

struct StageAssignment {
  std::vector<OpAssignment> ops;  // In recorded order.
  std::vector<FusedAssignment> fused_ops;

  int32_t stage_of(size_t op) const { return fused_ops[size_t(ops[op].fused)].stage; }
};

// REQUIRES: `ops` as they were recorded, with values named as graph/reference.h says.
StageAssignment assign_stages(std::vector<Op>& ops, size_t value_count,
                              const PieceAlignment& alignment);

}  // namespace cairn
