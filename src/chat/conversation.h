// Conversations as messages, and how they become tokens: by the model's chat template, whose own
// text alone may hold special tokens. What the model itself wrote keeps the tokens that it wrote,
// as far as the template still writes the same. Knows no engine. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "chat/chat_template.h"
#include "chat/format.h"
#include "tokenize/tokenizer.h"

namespace cairn::chat {

struct ToolCall {
  std::string id, name;
  std::string arguments;  // JSON text, as the model wrote it.

  bool operator==(const ToolCall&) const = default;
};

struct Message {
  std::string role;  // "system", "user", "assistant" or "tool"
  std::string content;
  // Of an answer: the tokens that the model chose, its reasoning and its calls among them. Its text
  // read again could give other ones, and all that is remembered of it would be lost. Empty where
  // nobody knows them.
  std::vector<Token> tokens = {};
  std::string reasoning = {};
  std::vector<ToolCall> calls = {};
  // Of a tool's result: the call that it answers, and the tool's name.
  std::string call_id = {};
  std::string name = {};
};

// How a model speaks. The pointers must outlive what uses them.
struct Dialect {
  const tokenize::Tokenizer* tokenizer = nullptr;
  const chat::ChatTemplate* chat_template = nullptr;
  const ChatFormat* format = nullptr;
};

struct PromptOptions {
  std::string tools = {};  // A JSON list, as requests have it; or empty.
  // Variables of the template that are switched, such as enable_thinking.
  std::vector<std::pair<std::string, bool>> switches = {};
  // Further variables of the template: names, and values as JSON; none that it has already.
  std::vector<std::pair<std::string, std::string>> variables = {};
  std::string answer_begin = {};  // Trusted text that the answer has to go on with.
};

struct Prompt {
  std::vector<Token> tokens;
  // The number of tokens before the text of each user message, ascending. Empty where the tokens
  // do not spell the rendered text byte for byte.
  std::vector<int32_t> message_starts = {};
  std::string end = {};  // The last bytes of the rendered text: ParserOptions::prompt.
};

// The prompt that asks for the assistant's next message. Errors: the template's; invalid_argument
// where a tool list is no JSON, or no token comes out.
Result<Prompt> encode_conversation(const Dialect& dialect, std::span<const Message> messages,
                                   const PromptOptions& options);

// Its text as the template writes it; `asks`: with what asks for the next message. The same errors.
Result<RenderedPrompt> render_conversation(const Dialect& dialect,
                                           std::span<const Message> messages,
                                           const PromptOptions& options, bool asks);

// A model may end in the middle of a character, or write what is none; templates only know text.
std::string as_utf8(std::string_view bytes);

enum class ReasoningMode : uint8_t { automatic, on, off };

// The template's options, and the text to append to its prompt, for this mode.
void set_reasoning(const ChatFormat& format, ReasoningMode mode, PromptOptions& options);

// The text that ends reasoning where the model does not end it itself; empty where there is none.
std::string reasoning_end(const ChatFormat& format);

// The id of a message's call, of the form that the template takes.
std::string make_call_id(const CallFormat& format, size_t message, size_t call);

}  // namespace cairn::chat
