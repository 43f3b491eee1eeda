// The conversation of a chat completion, read. Thread-safe: pure.
#pragma once

#include <vector>

#include "serve/fields.h"
#include "serve/routes/chat_order.h"

namespace cairn::serve::openai {

// `knows_developer`: the template has a role of this name; else it is the system's.
Checked<ChatRequest> read_chat_request(const Body& body, bool knows_developer);
// Its messages alone; none where the body has none.
Checked<std::vector<chat::Message>> read_messages(const Body& body, bool knows_developer);
// All else: tools, reasoning, the template's variables.
Checked<Ok> read_chat_form(const Body& body, ChatRequest& request);

}  // namespace cairn::serve::openai
