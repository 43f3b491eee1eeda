// Why a position of a sequence has an anchor (a checkpoint that one can go back to). Knows nothing
// of what an anchor keeps.
#pragma once

#include <cstdint>

namespace cairn::memory {

enum class AnchorKind : uint8_t {
  message_start,  // A message begins here: where people edit.
  prompt_end,     // The prompt ends here: where an answer is regenerated.
  answer_end,     // An answer ends here: where the next turn starts.
  tail,           // Set by the memory itself: the state from which its log is replayed.
};

}  // namespace cairn::memory
