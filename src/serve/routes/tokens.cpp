// POST /tokenize, /detokenize, /apply-template.
#include <utility>

#include "chat/chat_input.h"
#include "chat/conversation.h"
#include "serve/routes/answering.h"
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

// Its text, or its bytes where they are no text.
json::Value piece_json(std::string_view piece) {
  if (unicode::valid_utf8_bytes(piece) == piece.size()) return piece;
  json::Value bytes = json::Value::array();
  for (const char byte : piece) bytes.push_back(unsigned(uint8_t(byte)));
  return bytes;
}

Made tokenize_text(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const tokenize::Tokenizer* const tokenizer, tokenizer_of(context));
  CAIRN_TRY(const Body body, Body::read(request.body, kTokenize));
  const json::Value* const parses = body.find("parse_special");
  const std::vector<Token> tokens = tokenizer->encode(
      *body.text("content"), {.add_special = body.is_true("add_special"),
                              .parse_special = parses == nullptr || *parses->as_boolean()});
  json::Value list = json::Value::array();
  for (const Token token : tokens) {
    if (body.is_true("with_pieces")) {
      list.push_back({{"id", index_of(token)}, {"piece", piece_json(tokenizer->piece(token))}});
    } else {
      list.push_back(index_of(token));
    }
  }
  return json_reply(json::to_text({{"tokens", std::move(list)}, {"count", tokens.size()}}));
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
  CAIRN_TRY(const tokenize::Tokenizer* const tokenizer, tokenizer_of(context));
  CAIRN_TRY(const Body body, Body::read(request.body, kApplyTemplate));
  if (engine.chat_template() == nullptr) {
    return Refusal{.status = 501,
                   .type = "not_supported_error",
                   .message = fmt::format("{} has no chat template", context.model.name)};
  }
  json::Value input = json::Value::object();
  for (const std::string_view name : {"messages", "tools", "add_generation_prompt"}) {
    if (const json::Value* const found = body.find(name)) input[name] = *found;
  }
  if (const json::Value* const variables = body.find("chat_template_kwargs")) {
    for (const json::Value::Member& member : variables->members()) {
      if (input.find(member.key) != nullptr || member.key == "bos_token" ||
          member.key == "eos_token" || member.key == "now" || member.key == "tools" ||
          member.key == "documents" || member.key == "add_generation_prompt") {
        return refuse_field("chat_template_kwargs", "expected variables of the template, found {}",
                            json::quoted(member.key));
      }
      input[member.key] = member.value;
    }
  }
  const auto piece = [&](std::optional<Token> token) {
    return token ? tokenizer->piece(*token) : std::string_view();
  };
  const tokenize::SpecialTokens& special = tokenizer->special_ids();
  Result<chat::ChatInput> parsed =
      chat::parse_chat_input(json::to_text(input), piece(special.bos), piece(special.eos));
  if (!parsed) return refusal_of(parsed.error(), "messages");
  Result<chat::RenderedPrompt> rendered = engine.chat_template()->render(*parsed);
  if (!rendered) return refusal_of(rendered.error(), "messages", "template_budget");
  return json_reply(json::to_text({{"prompt", rendered->text}}));
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
