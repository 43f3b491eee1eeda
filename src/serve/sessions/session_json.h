// Sessions as JSON, and what going on behind their messages costs. Thread-safe: pure, but for the
// service.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "serve/refusal.h"
#include "serve/served_model.h"
#include "serve/sessions/session_state.h"
#include "serve/sessions/session_table.h"

namespace cairn::serve {

// What a session is, without its messages. The table has it, and says how long it stays.
json::Value session_json(const SessionState& state, const SessionTable& table);
// The same with the active branch's messages, as saved conversations have them
// (session/transcript.h).
json::Value whole_session_json(const SessionState& state, const SessionTable& table);

// The messages of a list, whose tokens are the model's. Errors: those of session::take_tokens().
Checked<std::vector<chat::Message>> messages_of(const SessionState& state,
                                                const session::MessageList& list,
                                                const ServedModel& model);

// {"reused", "recomputed", "replayed", "reason", "on_disk"}: what of the active branch is in memory
// and what would be computed again, before anything that is said next.
// For the tenant's cache.
Checked<json::Value> price_json(const SessionState& state, const ServedModel& model,
                                uint64_t tenant);

}  // namespace cairn::serve
