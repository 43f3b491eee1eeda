// A change to a matrix that stays beside it: W x + scale * B (A x), with a short A x; for experts,
// one for each of them. How adapters (LoRA) reach a model without touching its weights.
// Thread-safe: constant data.
#pragma once

#include "device/weight.h"

namespace cairn {

struct LowRank {
  const Weight* of = nullptr;
  const Weight* a = nullptr;  // [inputs of W, rank], as many as W has matrices.
  const Weight* b = nullptr;  // [rank, outputs of W], likewise.
  float scale = 1.0f;
};

}  // namespace cairn
