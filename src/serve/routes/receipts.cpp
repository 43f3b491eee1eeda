// /v1/receipts, and receipts beside answers.
#include <random>
#include <utility>

#include "serve/routes/answering.h"
#include "serve/routes/receipt_order.h"
#include "session/receipt_text.h"
#include "session/replay.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

std::string new_receipt_id() {
  std::random_device device;
  return fmt::format("rcpt_{:08x}{:08x}{:08x}", device(), device(), device());
}

// Compares what comes with the receipt that it was computed for.
class ReplayWriter final : public AnswerWriter {
 public:
  explicit ReplayWriter(session::Receipt receipt) : receipt_(std::move(receipt)) {}

  bool is_stream() const override { return false; }
  void begin(const PromptReport&, std::string&) override {}
  void add(size_t, const session::AnswerPiece&, std::string&) override {}
  void end_choice(size_t, const session::Answer&, std::string&) override {}
  void end(std::span<const session::Answer> answers, std::string& out) override {
    const session::Answer& answer = answers.front();
    json::Value told = comparison_json(receipt_, difference_of(receipt_, *answer.receipt));
    told["object"] = "receipt.replay";
    told["computed_tokens"] = answer.prompt.computed_tokens + int64_t(answer.tokens.size());
    if (answer.finish == session::FinishReason::memory) {
      // What is missing is not different.
      told["equal"] = json::Value();
      told["cut_by"] = answer.cut_by;
    }
    out += json::to_text(told);
  }
  void fail(const Refusal&, std::string&) override {}

 private:
  session::Receipt receipt_;
};

Made replay(const RouteContext& context, const http::Request& request) {
  CAIRN_TRY(Body::read(request.body, kReceipt));
  CAIRN_TRY(check_model(context));
  Result<session::Receipt> receipt = session::read_receipt("receipt", request.body);
  if (!receipt) return refusal_of(receipt.error(), "receipt");
  session::Service& service = *context.model.service;
  const Engine& engine = service.engine();
  const auto uses = session::adapters_of(engine, receipt->sources);
  const auto sources = session::ReceiptSources::of(engine, uses);
  if (const auto difference = session::difference_of(receipt->sources, sources)) {
    json::Value told = session::comparison_json(*receipt, difference);
    told["object"] = "receipt.replay";
    told["computed_tokens"] = 0;
    return json_reply(json::to_text(told));
  }
  const EngineOptions& options = engine.options();
  const bool is_same_context = receipt->context_tokens == options.context_tokens &&
                               receipt->context_policy == options.context_policy &&
                               receipt->shift_keep == options.shift_keep;
  if (!is_same_context) {
    return refuse_field("context", "expected the context of this server, {} tokens, found {}",
                        options.context_tokens, receipt->context_tokens);
  }
  Result<session::AnswerOrder> order =
      session::make_replay_order(engine, *receipt, service.grammars(context.tenant));
  if (!order) return refusal_of(order.error(), "receipt");
  CAIRN_TRY(check_prompt(context, order->prompt, "prompt"));
  std::vector<session::AnswerOrder> orders;
  orders.push_back(std::move(order).value());
  return begin_answers(context, request, std::move(orders),
                       std::make_unique<ReplayWriter>(std::move(receipt).value()));
}

}  // namespace

Checked<TellReceipt> ask_for_receipt(const RouteContext& context, const http::Request& request,
                                     const Body& body, const ChatRequest& asked,
                                     const AnswerSettings& settings, session::AnswerOrder& order) {
  if (!body.is_true("receipt")) return TellReceipt();
  if (context.model.engine().numerics() != Numerics::exact_1) {
    return refuse_field("receipt", "expected a server with exact numerics, found fast ones");
  }
  order.receipt = session::ReceiptForm{.constraint = settings.constraint, .tools = asked.tools};
  if (settings.constraint.count() == 0) {
    order.receipt->tool_choice = asked.tool_choice;
    order.receipt->calls_once = asked.calls_once;
    order.receipt->calls_end = order.prompt_end;
    order.receipt->is_to_results = asked.messages.back().role == "tool";
  }
  return TellReceipt([table = context.receipts, owner = request.owner](
                         const session::Answer& answer, json::Value& told) {
    Result<json::Value> json = session::receipt_json(*answer.receipt);
    if (!json) {
      told["receipt"] = json::Value();
      return;
    }
    const auto text = std::make_shared<const std::string>(json::to_text(*json) + "\n");
    const std::string id = new_receipt_id();
    table->add(id, owner, text, text->size());
    told["receipt_id"] = id;
    told["receipt"] = std::move(json).value();
  });
}

std::unique_ptr<http::Reply> get_receipt(const ServerContext& context, http::Request& request) {
  const std::string& path = request.head.path;
  const auto text = context.receipts->find(path.substr(path.rfind('/') + 1), request.owner);
  if (text != nullptr) return json_reply(*text);
  return refusal_reply({.status = 404,
                        .type = "not_found_error",
                        .code = "receipt_not_found",
                        .message = "receipt: expected one of this key's that is kept, found none"});
}

std::unique_ptr<http::Reply> post_receipt_replay(const RouteContext& context,
                                                 http::Request& request) {
  return reply_of(replay(context, request));
}

}  // namespace cairn::serve
