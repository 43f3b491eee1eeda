// Why a position of a sequence has an anchor (a checkpoint that one can go back to). Knows nothing
// of what an anchor keeps.
#pragma once

#include <cstdint>

namespace cairn::memory {

enum class AnchorKind : uint8_t {
  message_start,  // A message begins here: where people edit.
  prompt_end,     // The prompt ends here: where an answer is regenerated.
  answer_end,     // An answer ends here: where the next turn starts.
  branch,         // Another sequence goes on otherwise from here.
  closing,        // A little before a prompt's end, from where another end is soon read.
  tail,           // Set by the memory itself: the state from which its log is replayed.
};

// Whether the place has a meaning in the conversation; the others are mere distances from an end.
constexpr bool is_border(AnchorKind kind) {
  return kind < AnchorKind::closing;
}

}  // namespace cairn::memory
