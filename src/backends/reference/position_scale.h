// The position-dependent query scale of op::ScaleByPosition. One function for all instruction sets,
// since it is needed once a row.
#pragma once

#include <cstdint>

namespace cairn::reference {

// 1 + factor * log(1 + floor(position / original_context)), in f64, rounded once.
// REQUIRES: position >= 0, original_context >= 1.
float position_scale(int32_t position, double factor, int32_t original_context);

}  // namespace cairn::reference
