// POST /v1/completions.
#include <optional>
#include <utility>

#include "serve/infill.h"
#include "serve/openai/completion_writer.h"
#include "serve/routes/answering.h"
#include "serve/routes/chat_order.h"
#include "serve/text_input.h"

namespace cairn::serve {

namespace {

Checked<std::vector<Token>> encode(const tokenize::Tokenizer& tokenizer, const TextInput& input,
                                   std::optional<std::string_view> suffix) {
  std::vector<Token> tokens = input.tokens;
  if (input.text) {
    tokens = suffix ? tokenizer.encode(*input.text, {.goes_on = true})
                    : tokenizer.encode(*input.text, {.add_special = true, .parse_special = true});
  }
  if (!suffix) return tokens;
  CAIRN_TRY(InfillPrompt prompt,
            encode_infill(tokenizer, {.before = std::move(tokens), .after = *suffix}, INT64_MAX));
  return std::move(prompt.tokens);
}

// An empty one is none.
std::optional<std::string_view> suffix_of(const Body& body) {
  const auto suffix = body.text("suffix");
  return suffix && !suffix->empty() ? suffix : std::nullopt;
}

// What a reply tells at most of the tokens of prompts: of each its own probability and those of
// others.
constexpr int64_t kPromptProbabilitiesMax = 1 << 18;

Checked<Ok> check_prompt_probabilities(const RouteContext& context, const Body& body,
                                       const AnswerSettings& settings,
                                       std::span<const session::AnswerOrder> orders) {
  if (suffix_of(body)) {
    return refuse_field("suffix", "expected none beside echo and logprobs, found one");
  }
  int64_t told = 0;
  for (const session::AnswerOrder& order : orders) {
    const int64_t tokens = int64_t(order.prompt.size());
    const int32_t context_tokens = context.model.engine().options().context_tokens;
    if (tokens > context_tokens) return context_refusal(tokens, context_tokens);
    told += tokens * (1 + settings.sampling.probability_count);
  }
  if (told <= kPromptProbabilitiesMax) return Ok{};
  return refuse_field("logprobs",
                      "expected at most {} probabilities of prompts' tokens in a reply, found {}",
                      kPromptProbabilitiesMax, told);
}

Checked<std::unique_ptr<http::Reply>> answer_completion(const RouteContext& context,
                                                        http::Request& request) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(const Body body, Body::read(request.body, kCompletion));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const AnswerSettings settings, read_answer_settings(body, context.model));
  CAIRN_TRY(std::vector<TextInput> inputs, read_text_inputs(body, "prompt", 128));
  const bool echoes = body.is_true("echo");
  CAIRN_TRY(session::AnswerOrder order, make_text_order(context, settings));
  openai::CompletionStyle style{.is_stream = settings.is_stream,
                                .tells_usage = settings.tells_usage,
                                .tells_probabilities = settings.tells_probabilities,
                                .top_count = settings.top_count,
                                .per_prompt = size_t(settings.answer_count)};
  std::vector<session::AnswerOrder> orders;
  for (TextInput& input : inputs) {
    CAIRN_TRY(order.prompt, encode(*engine.tokenizer(), input, suffix_of(body)));
    CAIRN_TRY(check_prompt(context, order.prompt, "prompt"));
    if (echoes) style.echo.push_back({text_of(input, *engine.tokenizer()), order.prompt.front()});
    const size_t first = orders.size();
    add_orders(settings, order, orders);
    // The other answers to the prompt tell what the first one is told.
    if (style.tells_prompts()) {
      orders[first].prompt_probability_count = settings.sampling.probability_count;
    }
  }
  if (style.tells_prompts()) {
    CAIRN_TRY(check_prompt_probabilities(context, body, settings, orders));
  }
  auto writer = std::make_unique<openai::CompletionWriter>(
      make_object_head("cmpl-", context.model.name), std::move(style), orders.size(),
      engine.tokenizer());
  return begin_answers(context, request, std::move(orders), std::move(writer));
}

}  // namespace

std::unique_ptr<http::Reply> post_completion(const RouteContext& context, http::Request& request) {
  return reply_of(answer_completion(context, request));
}

}  // namespace cairn::serve
