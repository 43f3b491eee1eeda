// OpenAI's POST /v1/responses and /v1/responses/input_tokens.
#include <utility>

#include "serve/openai/responses_items.h"
#include "serve/openai/responses_request.h"
#include "serve/openai/responses_writer.h"
#include "serve/response_table.h"
#include "serve/routes/answering.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

// What the object tells of its request.
json::Value told_json(const Body& body, const AnswerSettings& settings) {
  json::Value told = json::Value::object();
  for (const std::string_view name :
       {"instructions", "metadata", "previous_response_id", "reasoning", "text", "user"}) {
    const json::Value* const found = body.find(name);
    told[name] = found == nullptr ? json::Value() : *found;
  }
  const json::Value *const tools = body.find("tools"), *const choice = body.find("tool_choice");
  told["tools"] = tools == nullptr ? json::Value::array() : *tools;
  told["tool_choice"] = choice == nullptr ? json::Value("auto") : *choice;
  told["parallel_tool_calls"] = body.is_true("parallel_tool_calls", true);
  told["max_output_tokens"] =
      settings.token_count_max < 0 ? json::Value() : json::Value(settings.token_count_max);
  told["temperature"] = double(settings.sampling.temperature);
  told["top_p"] = double(settings.sampling.top_p);
  told["store"] = body.is_true("store", true);
  told["truncation"] = "disabled";
  told["background"] = false;
  return told;
}

// Null where the request follows none.
Checked<ResponseTable::Kept> read_earlier(const RouteContext& context, const Body& body,
                                          const std::string& client) {
  const auto id = body.text("previous_response_id");
  if (!id || id->empty()) return ResponseTable::Kept();
  ResponseTable::Kept found = context.responses->find(std::string(*id), client);
  if (found != nullptr) return found;
  return Refusal{.status = 404,
                 .type = "not_found_error",
                 .code = "previous_response_not_found",
                 .message = "previous_response_id: expected an answer that is kept, found none",
                 .field = "previous_response_id"};
}

Made count_input(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kResponses));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const ResponseTable::Kept earlier, read_earlier(context, body, request.client));
  std::span<const chat::Message> known;
  if (earlier != nullptr) known = earlier->messages;
  CAIRN_TRY(const ChatRequest asked,
            openai::read_responses_request(body, known, knows_developer(context.model)));
  CAIRN_TRY(const ChatPrompt made, encode_chat(context.model.engine(), asked));
  return json_reply(json::to_text(
      {{"object", "response.input_tokens"}, {"input_tokens", made.prompt.tokens.size()}}));
}

Made respond(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kResponses));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(AnswerSettings settings, read_answer_settings(body, context.model));
  CAIRN_TRY(session::ConstraintChoice form, openai::read_text_form(body));
  if (form.count() > 0) settings.constraint = std::move(form);
  CAIRN_TRY(const ResponseTable::Kept earlier, read_earlier(context, body, request.client));
  std::span<const chat::Message> known;
  if (earlier != nullptr) known = earlier->messages;
  CAIRN_TRY(ChatRequest asked,
            openai::read_responses_request(body, known, knows_developer(context.model)));
  CAIRN_TRY(session::AnswerOrder order, make_chat_order(context, asked, settings));
  std::vector<session::AnswerOrder> orders;
  add_orders(settings, std::move(order), orders);
  openai::ResponsesStyle style{.is_stream = settings.is_stream,
                               .head = make_object_head("resp_", context.model.name),
                               .told = told_json(body, settings),
                               .message_count = asked.messages.size()};
  openai::ResponsesWriter::Keep keep;
  if (body.is_true("store", true)) {
    // What was told first does not stay.
    if (!body.text("instructions").value_or("").empty()) {
      asked.messages.erase(asked.messages.begin());
    }
    keep = [table = context.responses, id = style.head.id, client = request.client,
            kept = KeptResponse{.messages = std::move(asked.messages),
                                .input = openai::input_items(*body.find("input"), style.head.id)}](
               const session::Answer& answer, const json::Value& object) mutable {
      kept.messages.push_back(answer.message);
      kept.object = json::to_text(object);
      table->add(id, client, std::move(kept));
    };
  }
  auto writer = std::make_unique<openai::ResponsesWriter>(
      std::move(style), &context.model.engine().chat_format(), std::move(keep));
  return begin_answers(context, request, std::move(orders), std::move(writer));
}

}  // namespace

std::unique_ptr<http::Reply> post_responses(const RouteContext& context, http::Request& request) {
  return reply_of(respond(context, request));
}

std::unique_ptr<http::Reply> post_response_tokens(const RouteContext& context,
                                                  http::Request& request) {
  return reply_of(count_input(context, request));
}

}  // namespace cairn::serve
