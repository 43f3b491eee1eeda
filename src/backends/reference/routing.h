// Routing: chooses the experts for one row of router logits. One function for all instruction sets:
// a row is short, and its order must be the same everywhere.
#pragma once

#include <cstdint>
#include <span>

#include "device/op.h"

namespace cairn::reference {

// Writes the chosen experts' indices (int32 in the floats' bits) and their weights, best first.
// `scratch` is room for one float an expert and, where there are several groups, one a group.
// REQUIRES: chosen.size() == weights.size() <= logits.size().
void route_row(const op::Route& op, std::span<const float> logits, std::span<float> scratch,
               std::span<float> chosen, std::span<float> weights);

// How many floats of scratch that is.
size_t scratch_floats(const op::Route& op);

// The order in which scores are compared: as integers, ascending, NaN below everything, and -0
// equal to +0. Weights come from files that may hold NaN, with which a comparison of floats is no
// order.
int32_t order_key(float score);

}  // namespace cairn::reference
