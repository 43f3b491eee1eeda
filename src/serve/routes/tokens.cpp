// POST /tokenize, /detokenize, /apply-template.
#include <utility>

#include "chat/conversation.h"
#include "serve/openai/chat_request.h"
#include "serve/routes/answering.h"
#include "serve/routes/chat_order.h"
#include "serve/text_input.h"
#include "tokenize/detokenizer.h"
#include "unicode/unicode.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

Checked<const tokenize::Tokenizer*> tokenizer_of(const RouteContext& context) {
  const tokenize::Tokenizer* const tokenizer = context.model.engine().tokenizer();
  if (tokenizer != nullptr) return tokenizer;
  return Refusal{.status = 501,
                 .type = "not_supported_error",
                 .message = fmt::format("{} has no vocabulary", context.model.name)};
}

// As many as /detokenize takes.
constexpr size_t kTextTokensMax = 1 << 20;

// Its text, or its bytes where they are no text.
void append_piece(std::string_view piece, std::string& out) {
  if (unicode::valid_utf8_bytes(piece) == piece.size()) {
    out += json::quoted(piece);
    return;
  }
  char separator = '[';
  for (const char byte : piece) {
    out += fmt::format("{}{}", separator, unsigned(uint8_t(byte)));
    separator = ',';
  }
  out += ']';
}

Made tokenize_text(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const tokenize::Tokenizer* const tokenizer, tokenizer_of(context));
  CAIRN_TRY(const Body body, Body::read(request.body, kTokenize));
  const std::vector<Token> tokens = tokenizer->encode(
      *body.text("content"), {.add_special = body.is_true("add_special"),
                              .parse_special = body.is_true("parse_special", true)});
  if (tokens.size() > kTextTokensMax) {
    return refuse_field("content", "expected a text of at most {} tokens, found {}", kTextTokensMax,
                        tokens.size());
  }
  const bool has_pieces = body.is_true("with_pieces");
  // Written at once: a value of each token would take a hundred times its text.
  std::string reply = R"({"tokens":[)";
  for (size_t index = 0; index < tokens.size(); ++index) {
    if (index > 0) reply += ',';
    const Token token = tokens[index];
    if (!has_pieces) {
      reply += fmt::format("{}", index_of(token));
      continue;
    }
    reply += fmt::format(R"({{"id":{},"piece":)", index_of(token));
    append_piece(tokenizer->piece(token), reply);
    reply += '}';
  }
  reply += fmt::format(R"(],"count":{}}})", tokens.size());
  return json_reply(std::move(reply));
}

Made detokenize_ids(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const tokenize::Tokenizer* const tokenizer, tokenizer_of(context));
  CAIRN_TRY(const Body body, Body::read(request.body, kDetokenize));
  CAIRN_TRY(const std::vector<Token> tokens, read_tokens(*body.find("tokens"), "tokens"));
  for (const Token token : tokens) {
    if (tokenizer->holds(token)) continue;
    return refuse_field("tokens", "expected ids below {}, found {}", tokenizer->token_count(),
                        index_of(token));
  }
  const std::string text =
      tokenize::decode(*tokenizer, tokens, {.is_whole_text = true, .show_control = true});
  return json_reply(json::to_text({{"content", chat::as_utf8(text)}}));
}

Made apply_template(const RouteContext& context, http::Request& request) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(tokenizer_of(context));
  CAIRN_TRY(const Body body, Body::read(request.body, kApplyTemplate));
  if (engine.chat_template() == nullptr) {
    return Refusal{.status = 501,
                   .type = "not_supported_error",
                   .message = fmt::format("{} has no chat template", context.model.name)};
  }
  ChatRequest asked;
  CAIRN_TRY(asked.messages, openai::read_messages(body, knows_developer(context.model)));
  CAIRN_TRY(openai::read_chat_form(body, asked));
  CAIRN_TRY(const std::string prompt,
            render_chat(engine, asked, body.is_true("add_generation_prompt", true)));
  return json_reply(json::to_text({{"prompt", prompt}}));
}

}  // namespace

std::unique_ptr<http::Reply> post_tokenize(const RouteContext& context, http::Request& request) {
  return reply_of(tokenize_text(context, request));
}

std::unique_ptr<http::Reply> post_detokenize(const RouteContext& context, http::Request& request) {
  return reply_of(detokenize_ids(context, request));
}

std::unique_ptr<http::Reply> post_apply_template(const RouteContext& context,
                                                 http::Request& request) {
  return reply_of(apply_template(context, request));
}

}  // namespace cairn::serve
