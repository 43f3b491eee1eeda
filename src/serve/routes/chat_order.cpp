// Templates, tools and forms.
#include "serve/routes/chat_order.h"

#include <algorithm>

#include "chat/tools.h"
#include "serve/routes/answering.h"
#include "session/conversation.h"

namespace cairn::serve {

namespace {

chat::PromptOptions prompt_options(const ChatRequest& request, const chat::ChatFormat& format) {
  chat::PromptOptions options{.tools = request.tools};
  chat::set_reasoning(
      format, request.reasons ? chat::ReasoningMode::automatic : chat::ReasoningMode::off, options);
  options.variables = request.variables;
  return options;
}

// What the answer has to look like: its form, or calls that fit the tools.
Checked<Ok> constrain(const RouteContext& context, const ChatRequest& request,
                      const AnswerSettings& settings, session::AnswerOrder& order) {
  const Engine& engine = context.model.engine();
  const session::TenantGrammars grammars = context.model.service->grammars(context.tenant);
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
        session::make_matcher(settings.constraint, engine.text(), grammars);
    if (!matcher) {
      return refusal_of(matcher.error(),
                        settings.constraint.json_schema ? "response_format" : "grammar",
                        "grammar_budget");
    }
    order.matcher = std::move(matcher).value();
    return Ok{};
  }
  if (order.tools.empty()) return Ok{};
  Result<session::CallMatchers> matchers =
      session::make_call_matchers(engine, engine.chat_format(), order.tools,
                                  {.choice = request.tool_choice,
                                   .prompt_end = order.prompt_end,
                                   .is_single = request.calls_once},
                                  grammars);
  if (!matchers) return refusal_of(matchers.error(), "tools", "grammar_budget");
  // Behind results a model may speak.
  const bool is_to_results = !request.messages.empty() && request.messages.back().role == "tool";
  order.matcher = is_to_results && matchers->to_results != nullptr ? std::move(matchers->to_results)
                                                                   : std::move(matchers->to_people);
  order.constrains_calls = order.matcher != nullptr;
  return Ok{};
}

}  // namespace

bool knows_developer(const ServedModel& model) {
  const chat::ChatTemplate* const chat_template = model.engine().chat_template();
  return chat_template != nullptr && chat_template->mentions("developer");
}

namespace {

Checked<chat::Prompt> encode_messages(const Engine& engine, const ChatRequest& request) {
  if (engine.chat_template() == nullptr) {
    if (!request.tools.empty()) {
      return refuse_field("tools", "expected none: the model has no chat template");
    }
    Result<session::Prompt> raw = session::encode_raw(engine, "", request.messages);
    if (!raw) return refusal_of(raw.error(), request.field);
    return std::move(raw).value();
  }
  const chat::ChatFormat& format = engine.chat_format();
  Result<session::Prompt> prompt = session::encode_conversation(engine, request.messages, &format,
                                                                prompt_options(request, format));
  if (!prompt) return refusal_of(prompt.error(), request.field, "template_budget");
  return std::move(prompt).value();
}

// Where one of a message is not known, all of the prompt stays.
std::vector<session::PromptPin> pins_of(const ChatRequest& request, const chat::Prompt& prompt) {
  const std::vector<int32_t>& starts = prompt.message_starts;
  const auto users = std::ranges::count(request.messages, "user", &chat::Message::role);
  std::vector<session::PromptPin> pins;
  for (const Breakpoint& each : request.breakpoints) {
    const bool has_next = size_t(users) == starts.size() && each.user_messages < starts.size();
    const int32_t end = has_next ? starts[each.user_messages] : int32_t(prompt.tokens.size());
    if (end > 0) pins.push_back({end, each.time});
  }
  return pins;
}

}  // namespace

Checked<ChatPrompt> encode_chat(const Engine& engine, const ChatRequest& request) {
  ChatPrompt made;
  CAIRN_TRY(made.prompt, encode_messages(engine, request));
  if (!request.answer_begin.empty()) {
    made.begun = engine.tokenizer()->encode(request.answer_begin, {.goes_on = true});
    made.prompt.tokens.insert(made.prompt.tokens.end(), made.begun.begin(), made.begun.end());
  }
  return made;
}

Checked<std::string> render_chat(const Engine& engine, const ChatRequest& request, bool asks) {
  const chat::ChatFormat& format = engine.chat_format();
  Result<chat::RenderedPrompt> rendered = chat::render_conversation(
      {.tokenizer = engine.tokenizer(), .chat_template = engine.chat_template(), .format = &format},
      request.messages, prompt_options(request, format), asks);
  if (!rendered) return refusal_of(rendered.error(), request.field, "template_budget");
  return std::move(rendered->text);
}

Checked<session::AnswerOrder> make_text_order(const RouteContext& context,
                                              const AnswerSettings& settings) {
  session::Service& service = *context.model.service;
  Result<std::unique_ptr<grammar::Matcher>> matcher = session::make_matcher(
      settings.constraint, service.engine().text(), service.grammars(context.tenant));
  if (!matcher) return refusal_of(matcher.error(), "grammar", "grammar_budget");
  session::AnswerOrder order;
  order.matcher = std::move(matcher).value();
  return order;
}

Checked<session::AnswerOrder> make_chat_order(const RouteContext& context,
                                              const ChatRequest& request,
                                              const AnswerSettings& settings) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(ChatPrompt made, encode_chat(engine, request));
  chat::Prompt& prompt = made.prompt;
  CAIRN_TRY(check_prompt(context, prompt.tokens, request.field));
  std::vector<session::PromptPin> pins = pins_of(request, prompt);
  session::AnswerOrder order{.prompt = std::move(prompt.tokens),
                             .message_starts = std::move(prompt.message_starts),
                             .answer_prefix = std::move(made.begun),
                             .prompt_end = std::move(prompt.end),
                             .reasoning_tokens_max = request.reasoning_tokens_max,
                             .pins = std::move(pins)};
  if (engine.chat_template() != nullptr) order.format = &engine.chat_format();
  CAIRN_TRY(constrain(context, request, settings, order));
  return order;
}

}  // namespace cairn::serve
