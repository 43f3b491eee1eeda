// POST /v1/chat/completions.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chat/tools.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/chat_writer.h"
#include "serve/routes/answering.h"
#include "serve/routes/chat_prompt.h"
#include "session/conversation.h"

namespace cairn::serve {

namespace {

using openai::AnswerSettings;
using openai::ChatRequest;

chat::PromptOptions prompt_options(const ChatRequest& request, const chat::ChatFormat& format) {
  chat::PromptOptions options{.tools = request.tools};
  chat::set_reasoning(
      format, request.reasons ? chat::ReasoningMode::automatic : chat::ReasoningMode::off, options);
  options.variables = request.variables;
  return options;
}

Checked<session::Prompt> encode(const Engine& engine, const ChatRequest& request) {
  if (engine.chat_template() == nullptr) {
    if (!request.tools.empty()) {
      return refuse_field("tools", "expected none: the model has no chat template");
    }
    Result<session::Prompt> raw = session::encode_raw(engine, "", request.messages);
    if (!raw) return refusal_of(raw.error(), "messages");
    return std::move(raw).value();
  }
  const chat::ChatFormat& format = engine.chat_format();
  Result<session::Prompt> prompt = session::encode_conversation(engine, request.messages, &format,
                                                                prompt_options(request, format));
  if (!prompt) return refusal_of(prompt.error(), "messages");
  return std::move(prompt).value();
}

// What the answer has to look like: its form, or calls that fit the tools.
Checked<Ok> constrain(session::Service& service, const ChatRequest& request,
                      const AnswerSettings& settings, session::AnswerOrder& order) {
  const Engine& engine = service.engine();
  const bool has_form = settings.constraint.count() > 0;
  if (!request.tools.empty()) {
    Result<std::vector<chat::Tool>> tools = chat::read_tools(request.tools);
    if (!tools) return refusal_of(tools.error(), "tools");
    order.tools = std::move(tools).value();
    if (engine.chat_format().call.shape == chat::CallShape::none) {
      return refuse_field("tools", "expected none: the chat template has no form for calls");
    }
  }
  const bool may_call = !order.tools.empty() && request.tool_choice != "none";
  if (has_form && may_call) {
    return refuse_field("tools", "expected tools or a form of the answer, found both");
  }
  if (has_form) {
    Result<std::unique_ptr<grammar::Matcher>> matcher =
        session::make_matcher(settings.constraint, engine, &service.grammars());
    if (!matcher) {
      return refusal_of(matcher.error(),
                        settings.constraint.json_schema ? "response_format" : "grammar");
    }
    order.matcher = std::move(matcher).value();
    return Ok{};
  }
  if (order.tools.empty()) return Ok{};
  Result<session::CallMatchers> matchers =
      session::make_call_matchers(engine, engine.chat_format(), order.tools, request.tool_choice,
                                  order.prompt_end, &service.grammars());
  if (!matchers) return refusal_of(matchers.error(), "tools");
  // Behind results a model may speak.
  const bool is_to_results = request.messages.back().role == "tool";
  order.matcher = is_to_results && matchers->to_results != nullptr ? std::move(matchers->to_results)
                                                                   : std::move(matchers->to_people);
  order.constrains_calls = order.matcher != nullptr;
  return Ok{};
}

struct AskedPrompt {
  ChatRequest asked;
  session::Prompt prompt;
  std::vector<Token> begun;  // The prompt's last tokens, where an answer is continued.
};

// An answer that is continued stands behind the place where the model would begin it.
Checked<AskedPrompt> read_prompt(const Engine& engine, const Body& body) {
  const chat::ChatTemplate* const chat_template = engine.chat_template();
  AskedPrompt made;
  CAIRN_TRY(made.asked, openai::read_chat_request(body, chat_template != nullptr &&
                                                            chat_template->mentions("developer")));
  std::string begun;
  if (body.is_true("continue_final_message")) {
    std::vector<chat::Message>& messages = made.asked.messages;
    const chat::Message& last = messages.back();
    if (last.role != "assistant" || last.content.empty() || !last.reasoning.empty() ||
        !last.calls.empty() || messages.size() == 1) {
      return refuse_field("continue_final_message",
                          "expected an assistant's message of plain text behind others");
    }
    begun = last.content;
    messages.pop_back();
  }
  CAIRN_TRY(made.prompt, encode(engine, made.asked));
  if (!begun.empty()) {
    const tokenize::TextPiece piece{begun, false};
    engine.tokenizer()->encode_to(std::span(&piece, 1), {.goes_on = true}, made.begun);
    made.prompt.tokens.insert(made.prompt.tokens.end(), made.begun.begin(), made.begun.end());
  }
  return made;
}

Checked<std::unique_ptr<http::Reply>> answer_chat(const RouteContext& context,
                                                  http::Request& request) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(const Body body, Body::read(request.body, kChat));
  CAIRN_TRY(check_model(context, body));
  CAIRN_TRY(const AnswerSettings settings,
            openai::read_answer_settings(body, kChat, context.model));
  const chat::ChatTemplate* const chat_template = engine.chat_template();
  CAIRN_TRY(AskedPrompt made, read_prompt(engine, body));
  const ChatRequest& asked = made.asked;
  session::Prompt& prompt = made.prompt;
  CAIRN_TRY(check_prompt(context, prompt.tokens, "messages"));
  session::AnswerOrder order{
      .prompt = std::move(prompt.tokens),
      .message_starts = std::move(prompt.message_starts),
      .answer_prefix = std::move(made.begun),
      .prompt_end = std::move(prompt.end),
      .reasoning_tokens_max = int32_t(body.integer("reasoning_tokens").value_or(-1))};
  if (chat_template != nullptr) order.format = &engine.chat_format();
  CAIRN_TRY(constrain(*context.model.service, asked, settings, order));
  std::vector<session::AnswerOrder> orders;
  add_orders(settings, std::move(order), orders);
  const openai::ChatStyle style{.is_stream = settings.is_stream,
                                .tells_usage = settings.tells_usage,
                                .tells_probabilities = settings.tells_probabilities,
                                .top_count = settings.top_count,
                                .message_count = asked.messages.size()};
  auto writer = std::make_unique<openai::ChatWriter>(
      openai::make_object_head("chatcmpl", context.model.name), style, orders.size(),
      engine.tokenizer(), &engine.chat_format());
  return begin_answers(context, request, std::move(orders), std::move(writer));
}

}  // namespace

Checked<session::Prompt> chat_prompt(const RouteContext& context, const Body& body) {
  CAIRN_TRY(AskedPrompt made, read_prompt(context.model.engine(), body));
  return std::move(made.prompt);
}

std::unique_ptr<http::Reply> post_chat(const RouteContext& context, http::Request& request) {
  return reply_of(answer_chat(context, request));
}

}  // namespace cairn::serve
