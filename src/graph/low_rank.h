// A LoRA adapter of one matrix, which is not merged into it: W x + scale * B (A x); with experts,
// one pair for each of them. Thread-safe: constant data.
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
