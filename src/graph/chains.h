// Deals recorded ops out to stages: an op's stage is one later than the last stage that it must
// wait for, unless it can go on where that stage's ops are, piece by piece (device/plan.h: Chain).
// Thread-safe: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "device/plan.h"
#include "graph/pieces.h"

namespace cairn {

struct DealtOp {
  int32_t chain = 0;
  bool leads = false;
  PieceOfOp piece;
};

// Of one op or more; of none if it was joined to another.
struct DealtChain {
  int32_t stage = 0;
  PieceShape shape;  // Of all its ops together.
};

struct DealtOps {
  std::vector<DealtOp> ops;  // In recorded order.
  std::vector<DealtChain> chains;

  int32_t stage_of(size_t op) const { return chains[size_t(ops[op].chain)].stage; }
};

// REQUIRES: `ops` as they were recorded, with values named as graph/reference.h says.
DealtOps deal_out(std::vector<Op>& ops, size_t value_count, const PieceGrains& grains);

}  // namespace cairn
