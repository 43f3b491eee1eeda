// The largest weight that a type takes, for whoever writes weights: what lies beyond becomes an
// infinity, or is cut. Thread-safe: pure.
#pragma once

#include <cmath>
#include <limits>

#include "quant/quant.h"

namespace cairn::quant {

// Scales of blocks are f16, but for MXFP4's, which reach farther, and NVFP4's of up to 448, of
// which its largest level is 6.
inline float reach_of(const Type& type) {
  if (type.name == "F32") return std::numeric_limits<float>::max();
  if (type.name == "NVFP4") return 6 * 448;
  return type.name == "BF16" ? 0x1.FEp127f : 65504.0f;
}

inline bool is_within(float weight, float reach) {
  return std::fabs(weight) <= reach;  // NaN is not.
}

// The type that takes what this one does not.
inline std::string_view wider_than(const Type& type) {
  return type.name == "BF16" ? "F32" : "BF16";
}

}  // namespace cairn::quant
