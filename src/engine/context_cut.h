// Which tokens of a text stay where it is longer than the context: the first ones, with a system
// message, and the end. What goes are whole turns, the oldest first, so that what stays is a
// conversation; only where one turn alone is too long, a part of it goes. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace cairn {

struct ContextLimits {
  int32_t context_tokens = 0;  // At least 4.
  int32_t keep_tokens = 0;     // From the beginning, at least; at most half of the context.
};

struct ContextCut {
  int32_t kept = 0;      // Tokens at the beginning that stay.
  int32_t left_out = 0;  // The tokens that follow those.
  int32_t turns = 0;     // Whole turns among them.
};

// What happens to a sequence when its context is full and the policy is to shift.
struct ContextShift {
  int32_t left_out_tokens = 0;
  int32_t left_out_turns = 0;  // Whole turns among them.
  int32_t read_tokens = 0;     // Of the tokens that stay: those to compute again.
};

// `turn_starts`: where messages of the user begin, ascending. The cut depends on nothing else, and
// while a text grows it stays the same until the context is full again: about half of the room goes
// at a time, so that turns seldom read what stays again.
ContextCut cut_context(int64_t token_count, std::span<const int32_t> turn_starts,
                       const ContextLimits& limits);

}  // namespace cairn
