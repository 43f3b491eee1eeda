// States that no text of a few bytes tells apart: where counts are written out as chains of states,
// most of a chain is far from its end, and masks of short tokens are the same all along it. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/automaton.h"

namespace cairn::grammar {

// For each state the lowest one that goes on with the same texts of at most `bytes` bytes, whatever
// lies below on the stack, and with the same tokens. Empty where that would be too much work: every
// state is then its own.
std::vector<uint32_t> near_states(const Automaton& automaton, int32_t bytes);

}  // namespace cairn::grammar
