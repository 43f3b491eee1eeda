// What the routes that make text have in common. Thread-safe: pure, but for the service.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/answer_settings.h"
#include "serve/generation.h"
#include "serve/routes/routes.h"

namespace cairn::serve {

// That the model makes text. Clients name all kinds of models; there is one, and replies say which.
Checked<Ok> check_model(const RouteContext& context);
// The prompt fits into the context, and its tokens are the model's.
Checked<Ok> check_prompt(const RouteContext& context, std::span<const Token> prompt,
                         std::string_view field);

// An order for each answer: those to one prompt differ by their seeds. The matcher is theirs in
// common.
void add_orders(const AnswerSettings& settings, session::AnswerOrder order,
                std::vector<session::AnswerOrder>& orders);

// A request's place among those that are answered at a time, and how the scheduler treats it.
struct Admission {
  std::unique_ptr<Slots::Slot> slot;
  JobTerms terms;
};

Checked<Admission> admit(const RouteContext& context, const http::Request& request);

Checked<std::unique_ptr<http::Reply>> begin_answers(const RouteContext& context,
                                                    const http::Request& request,
                                                    std::vector<session::AnswerOrder> orders,
                                                    std::unique_ptr<AnswerWriter> writer);

// The value, or the refusal as a reply.
std::unique_ptr<http::Reply> reply_of(Checked<std::unique_ptr<http::Reply>> made,
                                      ErrorForm form = ErrorForm::openai);

}  // namespace cairn::serve
