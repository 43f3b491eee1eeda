// The prompt of a chat completion, for those who ask what it would cost. Thread-safe: pure.
#pragma once

#include "serve/fields.h"
#include "serve/routes/routes.h"
#include "session/conversation.h"

namespace cairn::serve {

// `body`: of a chat completion.
Checked<session::Prompt> chat_prompt(const RouteContext& context, const Body& body);

}  // namespace cairn::serve
