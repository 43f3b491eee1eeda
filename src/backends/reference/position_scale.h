// The position-dependent query scale of op::ScaleByPosition. One function for all instruction sets,
// since it is needed once a row.
#pragma once

#include <cstdint>

#include "device/op.h"

namespace cairn::reference {

// 1 + op.factor * log(1 + floor((position + op.offset) / op.original_context)), in f64, rounded
// once. REQUIRES: position + op.offset >= 0, op.original_context >= 1.
float position_scale(const op::ScaleByPosition& op, int32_t position);

}  // namespace cairn::reference
