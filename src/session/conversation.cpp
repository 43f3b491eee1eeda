// The engine's parts, put together.
#include "session/conversation.h"

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

Result<std::vector<Token>> encode_raw(const Engine& engine, std::string_view text) {
  CHECK(engine.tokenizer() != nullptr);
  std::vector<Token> tokens =
      engine.tokenizer()->encode(text, {.add_special = true, .parse_special = true});
  if (tokens.empty()) {
    return fail(ErrorCode::invalid_argument, "prompt: expected at least one token, found none");
  }
  return tokens;
}

}  // namespace cairn::session
