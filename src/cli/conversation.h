// Conversations as messages, and how they become tokens: by the model's chat template, whose own
// text alone may hold special tokens, or, for models without one, as plain text.
// Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"

namespace cairn::cli {

using Message = text::ChatMessage;  // Roles: "system", "user" or "assistant".

// What a model is to go on from, and where messages begin in it, as far as that is known.
struct Prompt {
  std::vector<Token> tokens;
  std::vector<int32_t> message_starts = {};  // Positions, ascending.
};

// The prompt that asks for the assistant's next message. REQUIRES: the engine has a tokenizer and a
// chat template. Errors: the template's.
Result<std::vector<Token>> encode_conversation(const Engine& engine,
                                               std::span<const Message> messages);

// The text as it is, special tokens in it included, with the tokens that the model wants around a
// text. REQUIRES: the engine has a tokenizer. Errors: invalid_argument when there are no tokens.
Result<std::vector<Token>> encode_raw(const Engine& engine, std::string_view text);

}  // namespace cairn::cli
