// States that no text of a few bytes distinguishes. In an unrolled repetition most states are far
// from its end, and the masks of short tokens are the same for all of them. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/automaton.h"

namespace cairn::grammar {

// For each state the lowest one that accepts the same continuations of at most `bytes` bytes,
// whatever is below on the stack, and the same tokens. Empty if that would be too much work: then
// no states are merged.
std::vector<uint32_t> near_states(const Automaton& automaton, int32_t bytes);

}  // namespace cairn::grammar
