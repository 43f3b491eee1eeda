// The engine's parts, put together.
#include "session/conversation.h"

#include "chat/raw_prompt.h"

namespace cairn::session {

Result<Prompt> encode_conversation(const Engine& engine, std::span<const Message> messages,
                                   const chat::ChatFormat* format,
                                   const chat::PromptOptions& options) {
  const chat::ChatFormat plain;
  return chat::encode_conversation({.tokenizer = engine.tokenizer(),
                                    .chat_template = engine.chat_template(),
                                    .format = format != nullptr ? format : &plain},
                                   messages, options);
}

Result<Prompt> encode_raw(const Engine& engine, std::string_view system,
                          std::span<const Message> messages) {
  CHECK(engine.tokenizer() != nullptr);
  Prompt prompt = chat::encode_raw(*engine.tokenizer(), system, messages);
  if (prompt.tokens.empty()) {
    return fail(ErrorCode::invalid_argument, "prompt: expected at least one token, found none");
  }
  return prompt;
}

Result<std::optional<Prompt>> prompt_behind(
    std::span<const Message> messages,
    FunctionRef<Result<Prompt>(std::span<const Message>)> encode) {
  std::optional<Prompt> asked;
  if (messages.empty() || messages.back().role != "assistant") return asked;
  std::vector<Message> followed(messages.begin(), messages.end());
  followed.push_back({"user", "x"});
  CAIRN_TRY(asked, encode(followed));
  if (asked->message_starts.empty()) {
    asked.reset();
  } else {
    asked->tokens.resize(size_t(asked->message_starts.back()));
  }
  return asked;
}

}  // namespace cairn::session
