// The prompt of a conversation, as the model's chat template writes it (chat/conversation.h), or
// plain text for models without a template. Thread-safe: pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "chat/conversation.h"
#include "engine/engine.h"

namespace cairn::session {

using chat::Message;
using chat::Prompt;

// The prompt that asks for the assistant's next message. `format`: null for what every template
// has. REQUIRES: the engine has a tokenizer and a chat template. Errors: the template's.
Result<Prompt> encode_conversation(const Engine& engine, std::span<const Message> messages,
                                   const chat::ChatFormat* format = nullptr,
                                   const chat::PromptOptions& options = {});

// The texts as they are (chat/raw_prompt.h). REQUIRES: the engine has a tokenizer. Errors:
// invalid_argument when there are no tokens.
Result<Prompt> encode_raw(const Engine& engine, std::string_view system,
                          std::span<const Message> messages);

}  // namespace cairn::session
