// What a chat template renders, as people and clients write it in JSON. Thread-safe: pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "chat/chat_template.h"

namespace cairn::chat {

// The input that a JSON text describes: a list of messages, or an object with `messages` and, as
// they are wanted, `tools`, `documents`, `add_generation_prompt`, `bos_token`, `eos_token`, `now`
// (YYYY-MM-DDTHH:MM:SS); any other member is a variable of the template. The clock is this
// machine's where `now` is missing. Errors: invalid_data, which names the member.
Result<ChatInput> parse_chat_input(std::string_view json, std::string_view bos_token,
                                   std::string_view eos_token);

}  // namespace cairn::chat
