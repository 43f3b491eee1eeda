// From orders to a generation.
#include "serve/routes/answering.h"

#include <chrono>
#include <span>

namespace cairn::serve {

Checked<Ok> check_model(const RouteContext& context) {
  const ServedModel& model = context.model;
  if (!model.makes_text() || model.engine().tokenizer() == nullptr) {
    return Refusal{
        .status = 501,
        .type = "not_supported_error",
        .message = fmt::format("{} makes no text: it is served for embeddings", model.name)};
  }
  return Ok{};
}

Checked<Ok> check_prompt(const RouteContext& context, std::span<const Token> prompt,
                         std::string_view field) {
  const Engine& engine = context.model.engine();
  if (prompt.empty()) return refuse_field(field, "expected at least one token, found none");
  for (const Token token : prompt) {
    if (engine.tokenizer()->holds(token) && index_of(token) < engine.size().vocabulary_count) {
      continue;
    }
    return refuse_field(field, "expected token ids from 0 to {}, found {}",
                        engine.size().vocabulary_count - 1, index_of(token));
  }
  const EngineOptions& options = engine.options();
  const bool is_cut = options.context_policy == ContextPolicy::shift;
  if (!is_cut && int64_t(prompt.size()) > options.context_tokens) {
    return context_refusal(int64_t(prompt.size()), options.context_tokens);
  }
  return Ok{};
}

void add_orders(const AnswerSettings& settings, session::AnswerOrder order,
                std::vector<session::AnswerOrder>& orders) {
  order.token_count_max = settings.token_count_max;
  order.stop = settings.stop;
  order.sampling = settings.sampling;
  order.drafts = settings.drafts;
  for (int32_t answer = 0; answer < settings.answer_count; ++answer) {
    orders.push_back(order);
    ++order.sampling.seed;
  }
}

Checked<Admission> admit(const RouteContext& context, const http::Request& request) {
  const int32_t tenant_count = request.tenants ? int32_t(request.tenants->tenants.size()) : 0;
  std::unique_ptr<Slots::Slot> slot = context.slots->take(request.client, tenant_count);
  if (slot == nullptr) return busy_refusal("the server answers as many requests as it may");
  context.model.service->set_tenants(request.tenants);
  JobTerms terms{.client = request.client.empty() ? request.address : request.client,
                 .request_id = request.id};
  if (context.request_seconds_max > 0) {
    terms.deadline =
        JobTerms::Clock::now() + std::chrono::duration_cast<JobTerms::Clock::duration>(
                                     std::chrono::duration<double>(context.request_seconds_max));
  }
  return Admission{.slot = std::move(slot), .terms = std::move(terms)};
}

Checked<std::unique_ptr<http::Reply>> begin_answers(const RouteContext& context,
                                                    const http::Request& request,
                                                    std::vector<session::AnswerOrder> orders,
                                                    std::unique_ptr<AnswerWriter> writer) {
  const std::optional<std::vector<AdapterUse>> adapters = context.model.adapters->get();
  for (session::AnswerOrder& order : orders) {
    if (!order.adapters) order.adapters = adapters;
    order.tenant = request.tenant;
  }
  CAIRN_TRY(Admission admission, admit(context, request));
  return std::unique_ptr<http::Reply>(std::make_unique<Generation>(
      context.model.service, std::move(orders), std::move(admission.terms), std::move(writer),
      context.metrics->of(context.model.name), std::move(admission.slot)));
}

std::unique_ptr<http::Reply> reply_of(Checked<std::unique_ptr<http::Reply>> made, ErrorForm form) {
  return made ? std::move(made).value() : refusal_reply(made.error(), form);
}

}  // namespace cairn::serve
