// Messages through the template, and its text with its marks through the tokenizer.
#include "cli/conversation.h"

#include <algorithm>
#include <optional>

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

Result<text::RenderedPrompt> render(const Engine& engine, std::span<const Message> messages) {
  const text::Tokenizer& tokenizer = *engine.tokenizer();
  std::vector<text::ChatMessage> readable;
  for (const Message& message : messages) {
    const bool is_answer = message.role == "assistant";
    readable.push_back({message.role, is_answer ? as_utf8(message.content) : message.content});
  }
  text::ChatInput input;
  CAIRN_TRY(input.messages, text::make_messages(readable));
  input.bos_token = piece_or_nothing(tokenizer, tokenizer.special_ids().bos);
  input.eos_token = piece_or_nothing(tokenizer, tokenizer.special_ids().eos);
  input.clock = text::local_time_now();
  return engine.chat_template()->render(input);
}

struct Range {
  size_t begin = 0, end = 0;  // Bytes of the rendered text.
};

// Where each message's content stands; absent where the template has changed it, or where two of
// them touch.
std::vector<std::optional<Range>> find_contents(const text::RenderedPrompt& prompt,
                                                std::span<const Message> messages) {
  std::vector<std::optional<Range>> found(messages.size());
  size_t next = 0;
  for (const text::OriginSpan& span : prompt.spans) {
    if (span.trusted) continue;
    const auto text = std::string_view(prompt.text).substr(span.begin, span.end - span.begin);
    for (size_t message = next; message < messages.size(); ++message) {
      if (messages[message].content != text) continue;
      found[message] = Range{span.begin, span.end};
      next = message + 1;
      break;
    }
  }
  return found;
}

// The tokens of a part of the rendered text, behind those in `tokens`.
void encode_part(const text::Tokenizer& tokenizer, const text::RenderedPrompt& prompt, Range part,
                 std::vector<Token>& tokens) {
  std::vector<text::TextPiece> pieces;
  for (const text::OriginSpan& span : prompt.spans) {
    const size_t begin = std::max<size_t>(span.begin, part.begin);
    const size_t end = std::min<size_t>(span.end, part.end);
    if (begin >= end) continue;
    pieces.push_back({std::string_view(prompt.text).substr(begin, end - begin), span.trusted});
  }
  if (!pieces.empty()) tokenizer.encode_to(pieces, {.parse_special = true}, tokens);
}

std::string spell(const text::Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) text += tokenizer.piece(token);
  return text;
}

// The rendered text's tokens, where answers keep the tokens that they were made of as long as these
// spell the same text.
std::vector<Token> encode_prompt(const text::Tokenizer& tokenizer,
                                 const text::RenderedPrompt& prompt,
                                 std::span<const Message> messages,
                                 std::span<const std::optional<Range>> contents) {
  std::vector<Token> whole, spliced;
  encode_part(tokenizer, prompt, {0, prompt.text.size()}, whole);
  size_t begin = 0;
  for (size_t message = 0; message < messages.size(); ++message) {
    if (!contents[message] || messages[message].tokens.empty()) continue;
    encode_part(tokenizer, prompt, {begin, contents[message]->begin}, spliced);
    spliced.insert(spliced.end(), messages[message].tokens.begin(), messages[message].tokens.end());
    begin = contents[message]->end;
  }
  encode_part(tokenizer, prompt, {begin, prompt.text.size()}, spliced);
  return spell(tokenizer, spliced) == spell(tokenizer, whole) ? spliced : whole;
}

std::vector<int32_t> find_message_starts(const text::Tokenizer& tokenizer,
                                         const text::RenderedPrompt& prompt,
                                         std::span<const Token> tokens,
                                         std::span<const Message> messages,
                                         std::span<const std::optional<Range>> contents) {
  const std::string spelled = spell(tokenizer, tokens);
  if (!spelled.ends_with(prompt.text)) return {};
  // Some vocabularies put a blank before a text.
  size_t token_end = 0;
  const size_t added_bytes = spelled.size() - prompt.text.size();
  std::vector<int32_t> starts;
  int32_t token = 0;
  for (size_t message = 0; message < messages.size(); ++message) {
    if (messages[message].role != "user" || !contents[message]) continue;
    const size_t begin = contents[message]->begin + added_bytes;
    while (token < int32_t(tokens.size())) {
      const size_t next_end = token_end + tokenizer.piece(tokens[size_t(token)]).size();
      if (next_end > begin) break;
      token_end = next_end;
      ++token;
    }
    starts.push_back(token);
  }
  return starts;
}

}  // namespace

Result<Prompt> encode_conversation(const Engine& engine, std::span<const Message> messages) {
  CHECK(engine.tokenizer() != nullptr && engine.chat_template() != nullptr);
  const text::Tokenizer& tokenizer = *engine.tokenizer();
  CAIRN_TRY(const text::RenderedPrompt rendered, render(engine, messages));
  const std::vector<std::optional<Range>> contents = find_contents(rendered, messages);
  Prompt prompt;
  prompt.tokens = encode_prompt(tokenizer, rendered, messages, contents);
  prompt.message_starts =
      find_message_starts(tokenizer, rendered, prompt.tokens, messages, contents);
  // Most templates write the first token themselves; where they leave it to the model, it is here.
  const std::optional<Token> bos = tokenizer.special_ids().bos;
  const bool starts_with_bos = !prompt.tokens.empty() && prompt.tokens.front() == bos;
  if (tokenizer.adds_bos() && bos && !starts_with_bos) {
    prompt.tokens.insert(prompt.tokens.begin(), *bos);
    for (int32_t& start : prompt.message_starts) ++start;
  }
  CAIRN_TRY(check_not_empty(prompt.tokens));
  return prompt;
}

Result<std::vector<Token>> encode_raw(const Engine& engine, std::string_view text) {
  CHECK(engine.tokenizer() != nullptr);
  std::vector<Token> tokens =
      engine.tokenizer()->encode(text, {.add_special = true, .parse_special = true});
  CAIRN_TRY(check_not_empty(tokens));
  return tokens;
}

}  // namespace cairn::cli
