// Ollama's requests, read: what they share with others becomes settings and a conversation.
// Thread-safe: pure.
#pragma once

#include "serve/answer_settings.h"
#include "serve/fields.h"
#include "serve/routes/chat_order.h"

namespace cairn::serve::ollama {

// Of /api/chat and /api/generate: their options, format, stream and probabilities.
Checked<AnswerSettings> read_settings(const Body& body, const ServedModel& model);

// The messages, tools and thinking of /api/chat. Calls that have no ids get them, and results the
// ids of the calls that they follow.
Checked<ChatRequest> read_chat_request(const Body& body, const chat::ChatFormat& format);
// The system and prompt of /api/generate, and its thinking.
Checked<ChatRequest> read_generate_request(const Body& body);

}  // namespace cairn::serve::ollama
