// Messages through the template, and its text with its marks through the tokenizer.
#include "cli/conversation.h"

#include <algorithm>

#include "text/unicode.h"

namespace cairn::cli {

namespace {

std::string piece_or_nothing(const text::Tokenizer& tokenizer, std::optional<Token> token) {
  return token ? std::string(tokenizer.piece(*token)) : std::string();
}

// A model may end in the middle of a character, or write what is none; templates only know text.
std::string as_utf8(std::string_view bytes) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  while (true) {
    const size_t valid = text::valid_utf8_bytes(bytes);
    out += bytes.substr(0, valid);
    if (valid == bytes.size()) return out;
    out += kReplacement;
    bytes.remove_prefix(valid + 1);
  }
}

Status check_not_empty(std::span<const Token> tokens) {
  if (!tokens.empty()) return Ok{};
  return fail(ErrorCode::invalid_argument, "prompt: expected at least one token, found none");
}

}  // namespace

Result<std::vector<Token>> encode_conversation(const Engine& engine,
                                               std::span<const Message> messages) {
  CHECK(engine.tokenizer() != nullptr && engine.chat_template() != nullptr);
  const text::Tokenizer& tokenizer = *engine.tokenizer();
  std::vector<Message> readable(messages.begin(), messages.end());
  for (Message& message : readable) {
    if (message.role == "assistant") message.content = as_utf8(message.content);
  }
  text::ChatInput input;
  CAIRN_TRY(input.messages, text::make_messages(readable));
  input.bos_token = piece_or_nothing(tokenizer, tokenizer.special_ids().bos);
  input.eos_token = piece_or_nothing(tokenizer, tokenizer.special_ids().eos);
  input.clock = text::local_time_now();
  CAIRN_TRY(const text::RenderedPrompt prompt, engine.chat_template()->render(input));
  std::vector<text::TextPiece> pieces;
  for (const text::OriginSpan& span : prompt.spans) {
    const std::string_view text = std::string_view(prompt.text).substr(span.begin,
                                                                      span.end - span.begin);
    pieces.push_back({text, span.trusted});
  }
  std::vector<Token> tokens = tokenizer.encode(pieces, {.parse_special = true});
  // Most templates write the first token themselves; where they leave it to the model, it is here.
  const std::optional<Token> bos = tokenizer.special_ids().bos;
  const bool starts_with_bos = !tokens.empty() && tokens.front() == bos;
  if (tokenizer.adds_bos() && bos && !starts_with_bos) tokens.insert(tokens.begin(), *bos);
  CAIRN_TRY(check_not_empty(tokens));
  return tokens;
}

Result<std::vector<Token>> encode_raw(const Engine& engine, std::string_view text) {
  CHECK(engine.tokenizer() != nullptr);
  std::vector<Token> tokens =
      engine.tokenizer()->encode(text, {.add_special = true, .parse_special = true});
  CAIRN_TRY(check_not_empty(tokens));
  return tokens;
}

}  // namespace cairn::cli
