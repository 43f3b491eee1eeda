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

struct Message {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
  // Of an answer: the tokens that the model chose. Its text read anew could give other ones, and
  // all that is remembered of it would be lost. Empty where nobody knows them.
  std::vector<Token> tokens = {};
};

struct Prompt {
  std::vector<Token> tokens;
  // How many tokens stand before the text of each user message, ascending. Empty where the tokens
  // do not spell the rendered text byte for byte.
  std::vector<int32_t> message_starts = {};
};

// The prompt that asks for the assistant's next message. REQUIRES: the engine has a tokenizer and a
// chat template. Errors: the template's.
Result<Prompt> encode_conversation(const Engine& engine, std::span<const Message> messages);

// The text as it is, special tokens in it included, with the tokens that the model wants around a
// text. REQUIRES: the engine has a tokenizer. Errors: invalid_argument when there are no tokens.
Result<std::vector<Token>> encode_raw(const Engine& engine, std::string_view text);

}  // namespace cairn::cli
