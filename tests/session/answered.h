// For tests: what a session has begun, driven to its end.
#pragma once

#include <utility>

#include "session/chat_session.h"

namespace cairn::session {

inline Result<Answer> answered(ChatSession& session, Status begun, const AnswerHooks& hooks = {}) {
  CAIRN_TRY(std::move(begun));
  return session.complete(hooks);
}

}  // namespace cairn::session
