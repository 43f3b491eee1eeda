// Routing: chooses the experts for one row of router logits. One function for all instruction sets,
// of which each brings its own arithmetic.
#pragma once

#include <cstdint>
#include <span>

#include "backends/reference/route_functions.h"
#include "device/op.h"

namespace cairn::reference {

// The definition of what the functions compute.
extern const RouteFunctions scalar_route;

// Writes the chosen experts' indices (int32 in the floats' bits) and their weights, best first.
// `scratch`: route_scratch_bytes() long, aligned to 4 bytes; to 64, it is faster.
// REQUIRES: chosen.size() == weights.size() <= logits.size().
void route_row(const op::Route& op, const RouteFunctions& functions, std::span<const float> logits,
               std::byte* scratch, std::span<float> chosen, std::span<float> weights);

size_t route_scratch_bytes(const op::Route& op);

// The order in which scores are compared: as integers, ascending, NaN below everything, and -0
// equal to +0. Weights come from files that may hold NaN, with which a comparison of floats is no
// order.
int32_t order_key(float score);

}  // namespace cairn::reference
