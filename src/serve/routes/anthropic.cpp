// Anthropic's POST /v1/messages and /v1/messages/count_tokens; and OpenAI's way of counting.
#include <utility>

#include "serve/answer_json.h"
#include "serve/anthropic/message_writer.h"
#include "serve/anthropic/messages_request.h"
#include "serve/openai/chat_request.h"
#include "serve/routes/answering.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

Made answer_messages(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kMessages));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(AnswerSettings settings, read_answer_settings(body, context.model));
  CAIRN_TRY(session::ConstraintChoice form, anthropic::read_output_form(body));
  if (form.count() > 0) settings.constraint = std::move(form);
  CAIRN_TRY(const ChatRequest asked, anthropic::read_messages_request(body));
  CAIRN_TRY(session::AnswerOrder order, make_chat_order(context, asked, settings));
  std::vector<session::AnswerOrder> orders;
  add_orders(settings, std::move(order), orders);
  anthropic::MessageStyle style{.is_stream = settings.is_stream,
                                .id = make_object_head("msg_", "").id,
                                .model = context.model.name,
                                .message_count = asked.messages.size()};
  auto writer = std::make_unique<anthropic::MessageWriter>(std::move(style),
                                                           &context.model.engine().chat_format());
  return begin_answers(context, request, std::move(orders), std::move(writer));
}

Made count_tokens(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kCountTokens));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const ChatRequest asked, anthropic::read_messages_request(body));
  CAIRN_TRY(const ChatPrompt made, encode_chat(context.model.engine(), asked));
  return json_reply(json::to_text({{"input_tokens", made.prompt.tokens.size()}}));
}

Made count_chat(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kChat));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const ChatRequest asked,
            openai::read_chat_request(body, knows_developer(context.model)));
  CAIRN_TRY(const ChatPrompt made, encode_chat(context.model.engine(), asked));
  return json_reply(json::to_text(
      {{"object", "response.input_tokens"}, {"input_tokens", made.prompt.tokens.size()}}));
}

}  // namespace

std::unique_ptr<http::Reply> post_messages(const RouteContext& context, http::Request& request) {
  return reply_of(answer_messages(context, request), ErrorForm::anthropic);
}

std::unique_ptr<http::Reply> post_count_tokens(const RouteContext& context,
                                               http::Request& request) {
  return reply_of(count_tokens(context, request), ErrorForm::anthropic);
}

std::unique_ptr<http::Reply> post_chat_tokens(const RouteContext& context, http::Request& request) {
  return reply_of(count_chat(context, request));
}

}  // namespace cairn::serve
