// The conversation of /v1/responses, read: items become messages, tools take the form of chat
// completions. Thread-safe: pure.
#pragma once

#include <span>

#include "serve/fields.h"
#include "serve/routes/chat_order.h"

namespace cairn::serve::openai {

// `earlier`: the messages that the items follow.
Checked<ChatRequest> read_responses_request(const Body& body,
                                            std::span<const chat::Message> earlier,
                                            bool knows_developer);

// The form that `text` asks for.
Checked<session::ConstraintChoice> read_text_form(const Body& body);

}  // namespace cairn::serve::openai
