// The second half of compiling: each piece is determinized if the result is at most a few times as
// large. Otherwise only its epsilon edges are removed, and matching follows several states at once.
// One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/fragments.h"

namespace cairn::grammar {

// States from which the end of their piece can be reached.
std::vector<bool> find_living(const Fragments& fragments);

// The states of all pieces, appended to `out`; dead ends are left out. Calls name pieces in `start`
// until link_pieces() has put their first states there. `starts` gets each piece's first state.
// REQUIRES: the root is living.
Status determinize(const Fragments& fragments, const std::vector<bool>& is_living,
                   const Limits& limits, int64_t& work, Automaton& out,
                   std::vector<uint32_t>& starts);

}  // namespace cairn::grammar
