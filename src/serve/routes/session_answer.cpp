// POST /v1/sessions/NAME/generate: an answer as chat completions have it, to what the session
// keeps. It becomes part of the session when it has ended; one that fails changes nothing.
#include <utility>

#include "serve/openai/chat_request.h"
#include "serve/openai/chat_writer.h"
#include "serve/routes/receipt_order.h"
#include "serve/routes/session_path.h"

namespace cairn::serve {

namespace {

// What is asked: the session as it will be, and the order.
struct Asked {
  SessionState state;
  ChatRequest request;
  session::AnswerOrder order;
  bool continues = false;
};

Checked<Ok> add_messages(const RouteContext& context, const Body& body, Asked& asked) {
  session::Dialogue& dialogue = asked.state.dialogue;
  if (const auto keep = body.integer("keep")) {
    const Status kept = dialogue.keep(size_t(*keep));
    if (!kept) return refusal_of(kept.error(), "keep");
  }
  CAIRN_TRY(std::vector<chat::Message> messages,
            openai::read_messages(body, knows_developer(context.model)));
  asked.continues = body.is_true("continue_answer");
  if (asked.continues) {
    const Status may = dialogue.check_continues();
    if (!may || !messages.empty()) {
      return refuse_field("continue_answer",
                          "expected an answer as the last message, and no new one");
    }
  }
  for (chat::Message& message : messages) dialogue.add(std::move(message));
  if (dialogue.messages().empty()) {
    return refuse_field("messages", "expected at least one message, found none");
  }
  return Ok{};
}

// The order goes on behind the tokens that there are.
Checked<Ok> continue_order(const RouteContext& context, chat::Message last, Asked& asked) {
  session::AnswerOrder& order = asked.order;
  std::vector<Token>& tokens = last.tokens;
  if (tokens.empty()) {
    tokens = context.model.engine().tokenizer()->encode(last.content, {.goes_on = true});
  }
  order.prompt.insert(order.prompt.end(), tokens.begin(), tokens.end());
  order.answer_prefix = std::move(tokens);
  order.sampler = asked.state.dialogue.sampler();
  return check_prompt(context, order.prompt, "messages");
}

Checked<Ok> make_order(const RouteContext& context, const Body& body, AnswerSettings& settings,
                       Asked& asked) {
  CAIRN_TRY(asked.request.messages,
            messages_of(asked.state, asked.state.dialogue.messages(), context.model));
  chat::Message last;
  if (asked.continues) {
    last = std::move(asked.request.messages.back());
    asked.request.messages.pop_back();
    if (asked.request.messages.empty()) {
      return refuse_field("continue_answer", "expected an answer behind others");
    }
    if (body.find("seed") == nullptr) settings.sampling.seed = asked.state.seed;
  }
  CAIRN_TRY(openai::read_chat_form(body, asked.request));
  asked.state.form = {.tools = asked.request.tools,
                      .reasons = asked.request.reasons,
                      .variables = asked.request.variables};
  asked.state.seed = settings.sampling.seed;
  CAIRN_TRY(asked.order, make_chat_order(context, asked.request, settings));
  if (asked.continues) CAIRN_TRY(continue_order(context, std::move(last), asked));
  return Ok{};
}

Checked<std::unique_ptr<http::Reply>> answer(const RouteContext& context,
                                             const http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kSessionAnswer));
  CAIRN_TRY(AnswerSettings settings, read_answer_settings(body, context.model));
  CAIRN_TRY(std::unique_ptr<SessionTable::Change> unique, change_session(context, request));
  const std::shared_ptr<SessionTable::Change> change = std::move(unique);
  Asked asked{.state = change->state()};
  if (asked.state.model != context.model.name) {
    return refuse_field("session", "expected one of the model {}, found one of {}",
                        context.model.name, asked.state.model);
  }
  if (asked.state.vocabulary != context.model.engine().tokenizer()->digest()) {
    return refuse_field("session", "expected one of this model's vocabulary, found another's");
  }
  CAIRN_TRY(add_messages(context, body, asked));
  CAIRN_TRY(make_order(context, body, settings, asked));
  CAIRN_TRY(change->reserve(asked.state));
  asked.order.wants_stop = change->wants_stop();
  CAIRN_TRY(const TellReceipt tell_receipt,
            ask_for_receipt(context, request, body, asked.request, settings, asked.order));
  openai::ChatStyle style{.is_stream = settings.is_stream,
                          .tells_usage = settings.tells_usage,
                          .tells_probabilities = settings.tells_probabilities,
                          .top_count = settings.top_count,
                          .message_count = asked.state.dialogue.messages().size(),
                          .session = asked.state.id};
  const chat::ChatFormat* const format = &context.model.engine().chat_format();
  std::vector<session::AnswerOrder> orders;
  add_orders(settings, std::move(asked.order), orders);
  style.on_end = [change, format, state = std::move(asked.state), continues = asked.continues,
                  tell_receipt](const session::Answer& made, json::Value& told) mutable {
    if (!continues || !made.tokens.empty()) {
      state.dialogue.add_answer(made.message, continues, format->call, made.sampler);
    }
    told["message_count"] = state.dialogue.messages().size();
    change->commit(std::move(state));
    if (tell_receipt) tell_receipt(made, told);
  };
  auto writer = std::make_unique<openai::ChatWriter>(
      make_object_head("chatcmpl-", context.model.name), style, orders.size(),
      context.model.engine().tokenizer(), format);
  CAIRN_TRY(std::unique_ptr<http::Reply> made,
            begin_answers(context, request, std::move(orders), std::move(writer)));
  return saved_reply(context, request.owner, session_name(request), std::move(made));
}

}  // namespace

std::unique_ptr<http::Reply> post_session_answer(const RouteContext& context,
                                                 http::Request& request) {
  return reply_of(answer(context, request));
}

}  // namespace cairn::serve
