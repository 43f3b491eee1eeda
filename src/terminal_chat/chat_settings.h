// What a person changes during a conversation, by name: sampling, reasoning, the length of answers.
// Names are those of the command line's options, with or without hyphens. Thread-safe: pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "session/chat_session.h"

namespace cairn::terminal_chat {

// Errors: invalid_argument: no such name (with the nearest, or the option that is given when the
// program starts), or a value out of range.
Status set_setting(session::ChatOptions& options, std::string_view name, std::string_view value);

// "temp=0.5 top-k=10": several at once; all or none are set. Errors: as above.
Status set_settings(session::ChatOptions& options, std::string_view list);

// A line for each: "temp 0.8".
std::string show_settings(const session::ChatOptions& options);

// "on", "off", or a number of tokens. Errors: invalid_argument.
Status set_reasoning_option(session::ChatOptions& options, std::string_view value);

}  // namespace cairn::terminal_chat
