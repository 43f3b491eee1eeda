// Why a position of a timeline was given an anchor. Knows nothing of what an anchor keeps.
#pragma once

#include <cstdint>

namespace cairn::memory {

enum class AnchorKind : uint8_t {
  message_start,  // A message of the conversation begins: the place where people edit.
  prompt_end,     // Behind the prompt, before its answer: the place to ask again.
  answer_end,     // Behind an answer: the place to go on from.
  tail,           // Set by the memory itself, as the base of its log.
};

}  // namespace cairn::memory
