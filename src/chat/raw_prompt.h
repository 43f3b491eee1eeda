// The prompt of a conversation without a template: its texts one behind the other. What people said
// may hold special tokens; an answer keeps the tokens that it was made of, as far as they spell its
// text, so that nothing that was computed of it is lost. Thread-safe: pure.
#pragma once

#include <span>
#include <string_view>

#include "chat/conversation.h"
#include "tokenize/tokenizer.h"

namespace cairn::chat {

// With the tokens that the model wants around a text.
Prompt encode_raw(const tokenize::Tokenizer& tokenizer, std::string_view system,
                  std::span<const Message> messages);

}  // namespace cairn::chat
