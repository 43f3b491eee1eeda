// GET /v1/memory, /v1/memory/events, POST /v1/memory/plan.
#include <optional>
#include <utility>

#include "serve/memory_json.h"
#include "serve/openai/chat_request.h"
#include "serve/routes/answering.h"
#include "serve/routes/chat_order.h"

namespace cairn::serve {

namespace {

class MemoryEvents final : public http::Reply {
 public:
  explicit MemoryEvents(std::shared_ptr<session::MemoryWatch> watch)
      : watch_(std::move(watch)),
        head_{.content_type = "text/event-stream",
              .headers = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}},
              .is_stream = true} {}
  ~MemoryEvents() override { watch_->listen({}); }

  void listen(std::function<void()> wake) override { watch_->listen(std::move(wake)); }
  // A client that reads slowly is told less often.
  State read(std::string& out) override {
    if (const auto report = watch_->take()) {
      const std::string news = changes_.next(*report);
      if (!news.empty()) out += "data: " + news + "\n\n";
    }
    return watch_->has_ended() ? State::ended : State::waiting;
  }
  const http::ReplyHead* head() const override { return &head_; }
  bool is_endless() const override { return true; }
  std::string_view idle_text() const override { return ": nothing has changed\n\n"; }

 private:
  std::shared_ptr<session::MemoryWatch> watch_;
  MemoryChanges changes_;
  http::ReplyHead head_;
};

Checked<std::unique_ptr<http::Reply>> plan_memory(const RouteContext& context,
                                                  http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kChat));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const ChatRequest asked,
            openai::read_chat_request(body, knows_developer(context.model)));
  CAIRN_TRY(const ChatPrompt made, encode_chat(context.model.engine(), asked));
  const chat::Prompt& prompt = made.prompt;
  CAIRN_TRY(check_prompt(context, prompt.tokens, "messages"));
  session::PricedPrompt priced;
  context.model.service->ask(
      [&](Engine& engine) { priced = session::price(engine, prompt.tokens, request.tenant); });
  const memory::ResumePlan& plan = priced.plan;
  json::Value starts = json::Value::array();
  for (const int32_t start : prompt.message_starts) starts.push_back(start);
  json::Value stored = json::Value::array();
  for (const auto& runs : priced.stored.runs) {
    json::Value flat = json::Value::array();
    for (const store::PositionRun& run : runs) {
      flat.push_back(run.begin);
      flat.push_back(run.end);
    }
    stored.push_back(std::move(flat));
  }
  json::Value reply = {{"object", "memory.plan"},
                       {"prompt_tokens", prompt.tokens.size()},
                       {"reused", plan.resume},
                       {"recomputed", plan.forward_tokens},
                       {"replayed", plan.recurrence_steps},
                       {"on_disk", priced.stored.length},
                       {"stored", std::move(stored)},
                       {"message_starts", std::move(starts)}};
  reply["reason"] = plan.reason.empty() ? json::Value() : json::Value(plan.reason);
  reply["sequence"] = priced.sequence.empty() ? json::Value() : json::Value(priced.sequence);
  return json_reply(json::to_text(reply));
}

std::optional<uint64_t> seen_tenant(const http::Request& request) {
  return request.sees_all ? std::nullopt : std::optional(request.tenant);
}

}  // namespace

std::unique_ptr<http::Reply> get_memory(const RouteContext& context, http::Request& request) {
  return json_reply(memory_json(context.model.service->memory_report(seen_tenant(request))));
}

std::unique_ptr<http::Reply> get_memory_events(const RouteContext& context,
                                               http::Request& request) {
  std::shared_ptr<session::MemoryWatch> watch =
      context.model.service->watch_memory(seen_tenant(request));
  if (watch == nullptr) return refusal_reply(busy_refusal("as many watch memory as may"));
  return std::make_unique<MemoryEvents>(std::move(watch));
}

std::unique_ptr<http::Reply> post_memory_plan(const RouteContext& context, http::Request& request) {
  return reply_of(plan_memory(context, request));
}

}  // namespace cairn::serve
