// POST /v1/completions.
#include <optional>
#include <utility>

#include "serve/openai/completion_writer.h"
#include "serve/openai/text_input.h"
#include "serve/routes/answering.h"

namespace cairn::serve {

namespace {

using openai::AnswerSettings;

// What stands between a text and its suffix, by the model's tokens for that.
Checked<std::vector<Token>> encode_infill(const tokenize::Tokenizer& tokenizer,
                                          std::vector<Token> before, std::string_view suffix) {
  const tokenize::SpecialTokens& special = tokenizer.special_ids();
  if (!special.fim_prefix || !special.fim_suffix || !special.fim_middle) {
    Refusal refusal = refuse_field("suffix", "expected none: the model has no tokens for infill");
    refusal.status = 501;
    refusal.type = "not_supported_error";
    return refusal;
  }
  std::vector<Token> tokens;
  if (tokenizer.adds_bos() && special.bos) tokens.push_back(*special.bos);
  tokens.push_back(*special.fim_prefix);
  tokens.insert(tokens.end(), before.begin(), before.end());
  tokens.push_back(*special.fim_suffix);
  tokenizer.encode_to(suffix, {.goes_on = true}, tokens);
  tokens.push_back(*special.fim_middle);
  return tokens;
}

Checked<std::vector<Token>> encode(const tokenize::Tokenizer& tokenizer,
                                   const openai::TextInput& input,
                                   std::optional<std::string_view> suffix) {
  std::vector<Token> tokens = input.tokens;
  if (input.text) {
    tokens = suffix ? tokenizer.encode(*input.text, {.goes_on = true})
                    : tokenizer.encode(*input.text, {.add_special = true, .parse_special = true});
  }
  if (suffix) return encode_infill(tokenizer, std::move(tokens), *suffix);
  return tokens;
}

Checked<std::unique_ptr<http::Reply>> answer_completion(const RouteContext& context,
                                                        http::Request& request) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(const Body body, Body::read(request.body, kCompletion));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const AnswerSettings settings,
            openai::read_answer_settings(body, kCompletion, context.model));
  CAIRN_TRY(std::vector<openai::TextInput> inputs, openai::read_text_inputs(body, "prompt", 128));
  const bool echoes = body.is_true("echo");
  if (echoes && settings.tells_probabilities) {
    Refusal refusal = refuse_field(
        "echo", "expected false beside logprobs: the probabilities of a prompt are not told");
    refusal.code = "unsupported_value";
    return refusal;
  }
  session::AnswerOrder order;
  Result<std::unique_ptr<grammar::Matcher>> matcher =
      session::make_matcher(settings.constraint, engine, &context.model.service->grammars());
  if (!matcher) return refusal_of(matcher.error(), "grammar");
  order.matcher = std::move(matcher).value();
  openai::CompletionStyle style{.is_stream = settings.is_stream,
                                .tells_usage = settings.tells_usage,
                                .tells_probabilities = settings.tells_probabilities,
                                .top_count = settings.top_count,
                                .per_prompt = size_t(settings.answer_count)};
  std::vector<session::AnswerOrder> orders;
  for (openai::TextInput& input : inputs) {
    CAIRN_TRY(order.prompt, encode(*engine.tokenizer(), input, body.text("suffix")));
    CAIRN_TRY(check_prompt(context, order.prompt, "prompt"));
    if (echoes) style.echo.push_back(openai::text_of(input, *engine.tokenizer()));
    add_orders(settings, order, orders);
  }
  auto writer = std::make_unique<openai::CompletionWriter>(
      openai::make_object_head("cmpl", context.model.name), std::move(style), orders.size(),
      engine.tokenizer());
  return begin_answers(context, request, std::move(orders), std::move(writer));
}

}  // namespace

std::unique_ptr<http::Reply> post_completion(const RouteContext& context, http::Request& request) {
  return reply_of(answer_completion(context, request));
}

}  // namespace cairn::serve
