// The conversation of a chat completion, read. Thread-safe: pure.
#pragma once

#include "serve/fields.h"
#include "serve/routes/chat_order.h"

namespace cairn::serve::openai {

// `knows_developer`: the template has a role of this name; else it is the system's.
Checked<ChatRequest> read_chat_request(const Body& body, bool knows_developer);

}  // namespace cairn::serve::openai
