// The prompt of a conversation, as the model's chat template writes it (chat/conversation.h), or
// plain text for models without a template. Thread-safe: pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
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

// What the prompt behind an answer begins with, whatever the user says next: up to the start of
// that message, which is found by one whose text does not matter. Nothing where no answer is last,
// or the place is not known. Errors: those of `encode`.
Result<std::optional<Prompt>> prompt_behind(
    std::span<const Message> messages,
    FunctionRef<Result<Prompt>(std::span<const Message>)> encode);

}  // namespace cairn::session
