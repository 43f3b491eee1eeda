// A change to a matrix that stays beside it: W x + scale * B (A x), with a short A x. How adapters
// (LoRA) reach a model without touching its weights. Thread-safe: constant data.
#pragma once

#include "device/weight.h"

namespace cairn {

struct LowRank {
  const Weight* of = nullptr;
  Weight a;  // [inputs of W, rank]
  Weight b;  // [rank, outputs of W]
  float scale = 1.0f;
};

}  // namespace cairn
