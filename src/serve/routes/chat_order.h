// From a conversation, whatever API it came by, to the order for its next message. Thread-safe:
// pure, but for the service's compiled grammars.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/conversation.h"
#include "serve/answer_settings.h"
#include "serve/routes/routes.h"
#include "session/answer_job.h"

namespace cairn::serve {

// A beginning of the conversation that is to stay in memory.
struct Breakpoint {
  size_t user_messages = 0;  // It ends where the next message of a user begins, or with the prompt.
  std::chrono::seconds time{0};
};

struct ChatRequest {
  std::vector<chat::Message> messages;
  std::string tools = {};  // A JSON list in OpenAI's form; empty: none.
  // auto, none, required, a tool's name; empty: as the model likes.
  std::string tool_choice = {};
  bool calls_once = false;  // An answer has one call at most. REQUIRES: there is a tool choice.
  bool reasons = true;      // False: reasoning is switched off.
  int32_t reasoning_tokens_max = -1;
  // Of the template: names, and their values as JSON.
  std::vector<std::pair<std::string, std::string>> variables = {};
  // What the answer goes on with: text of whoever asks, without special tokens.
  std::string answer_begin = {};
  std::vector<Breakpoint> breakpoints = {};
  // What errors call the conversation.
  std::string_view field = "messages";
};

// Whether the model's template has a role of this name; else it is the system's.
bool knows_developer(const ServedModel& model);

struct ChatPrompt {
  chat::Prompt prompt;
  std::vector<Token> begun;  // Its last tokens: those of `answer_begin`.
};

// Of any length. REQUIRES: check_model().
Checked<ChatPrompt> encode_chat(const Engine& engine, const ChatRequest& request);

// The text alone, without `answer_begin`; `asks`: up to where the answer begins. REQUIRES: the
// same, and that the model has a template.
Checked<std::string> render_chat(const Engine& engine, const ChatRequest& request, bool asks);

// The order for a continued text, without its prompt and what add_orders() adds.
Checked<session::AnswerOrder> make_text_order(const RouteContext& context,
                                              const AnswerSettings& settings);
// That for a message, without the latter. The prompt fits the context. REQUIRES: the same.
Checked<session::AnswerOrder> make_chat_order(const RouteContext& context,
                                              const ChatRequest& request,
                                              const AnswerSettings& settings);

}  // namespace cairn::serve
