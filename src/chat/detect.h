// Finds out how a model writes calls and reasoning from what its chat template makes of messages
// with marked names and values; templates that only read such text, and never write it, are known
// by a phrase of their source (chat/families.h). Thread-safe: pure.
#pragma once

#include <string>
#include <string_view>

#include "chat/chat_template.h"
#include "chat/format.h"

namespace cairn::chat {

// Some fifty renderings of short messages: a few milliseconds. Where they need more work than one
// render may do, the form in which all is text, marked is_undetected.
ChatFormat detect(const chat::ChatTemplate& chat_template);

}  // namespace cairn::chat
