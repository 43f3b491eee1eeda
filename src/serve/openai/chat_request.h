// The conversation of a chat completion: messages, tools, and how the model is to reason.
// Thread-safe: pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/conversation.h"
#include "serve/fields.h"

namespace cairn::serve::openai {

struct ChatRequest {
  std::vector<chat::Message> messages;
  std::string tools = {};  // A JSON list; empty: none.
  // auto, none, required, a tool's name; empty: as the model likes.
  std::string tool_choice = {};
  bool reasons = true;  // False: reasoning is switched off.
  // Of the template: names, and their values as JSON.
  std::vector<std::pair<std::string, std::string>> variables = {};
};

// `knows_developer`: the template has a role of this name; else it is the system's.
Checked<ChatRequest> read_chat_request(const Body& body, bool knows_developer);

}  // namespace cairn::serve::openai
