// The conversation of Anthropic's messages, read: content blocks become messages and calls, tools
// take OpenAI's form. Thread-safe: pure.
#pragma once

#include "serve/fields.h"
#include "serve/routes/chat_order.h"

namespace cairn::serve::anthropic {

Checked<ChatRequest> read_messages_request(const Body& body);
// What `output_config` says of the answer's form; none where there is none.
Checked<session::ConstraintChoice> read_output_form(const Body& body);

}  // namespace cairn::serve::anthropic
