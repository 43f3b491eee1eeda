// POST /v1/chat/completions.
#include <utility>

#include "serve/openai/chat_request.h"
#include "serve/openai/chat_writer.h"
#include "serve/routes/answering.h"
#include "serve/routes/receipt_order.h"

namespace cairn::serve {

namespace {

Checked<std::unique_ptr<http::Reply>> answer_chat(const RouteContext& context,
                                                  http::Request& request) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(const Body body, Body::read(request.body, kChat));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const AnswerSettings settings, read_answer_settings(body, context.model));
  CAIRN_TRY(const ChatRequest asked,
            openai::read_chat_request(body, knows_developer(context.model)));
  CAIRN_TRY(session::AnswerOrder order, make_chat_order(context, asked, settings));
  CAIRN_TRY(TellReceipt tell_receipt,
            ask_for_receipt(context, request, body, asked, settings, order));
  std::vector<session::AnswerOrder> orders;
  add_orders(settings, std::move(order), orders);
  const openai::ChatStyle style{.is_stream = settings.is_stream,
                                .tells_usage = settings.tells_usage,
                                .tells_probabilities = settings.tells_probabilities,
                                .top_count = settings.top_count,
                                .message_count = asked.messages.size(),
                                .on_end = std::move(tell_receipt)};
  auto writer = std::make_unique<openai::ChatWriter>(
      make_object_head("chatcmpl-", context.model.name), style, orders.size(), engine.tokenizer(),
      &engine.chat_format());
  return begin_answers(context, request, std::move(orders), std::move(writer));
}

}  // namespace

std::unique_ptr<http::Reply> post_chat(const RouteContext& context, http::Request& request) {
  return reply_of(answer_chat(context, request));
}

}  // namespace cairn::serve
