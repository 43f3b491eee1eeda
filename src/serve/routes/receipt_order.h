// Asking for receipts beside answers. Thread-safe: pure, but for the table of receipts.
#pragma once

#include <functional>

#include "serve/answer_settings.h"
#include "serve/routes/chat_order.h"
#include "serve/routes/routes.h"

namespace cairn::serve {

// Keeps the receipt of an answer that has ended, and tells it.
using TellReceipt = std::function<void(const session::Answer& answer, json::Value& told)>;

// Where the body asks for receipts, so does the order. None where it does not. Errors: 400, where
// the engine's numerics are not exact.
Checked<TellReceipt> ask_for_receipt(const RouteContext& context, const http::Request& request,
                                     const Body& body, const ChatRequest& asked,
                                     const AnswerSettings& settings, session::AnswerOrder& order);

}  // namespace cairn::serve
