// A conversation as a file: {"messages": [{"role": …, "content": …}, …]}, the form that chat
// clients send, with reasoning_content, tool_calls and tool_call_id where there are any.
// Thread-safe: pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/conversation.h"

namespace cairn::session {

// Replaces the file as a whole or not at all, readable by its owner alone. Bytes that are not UTF-8
// become U+FFFD. Errors: io.
Status write_transcript(const std::string& path, std::span<const Message> messages);

// Errors: not_found, io, no_room, and invalid_data that names what is not as expected: an optional
// first system message, then user and assistant in turn, with results of tools behind calls.
Result<std::vector<Message>> read_transcript(const std::string& path);

}  // namespace cairn::session
