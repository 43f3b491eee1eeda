// What the routes of sessions have in common. Thread-safe: pure.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "serve/routes/answering.h"
#include "serve/sessions/saved_reply.h"
#include "serve/sessions/session_json.h"

namespace cairn::serve {

// NAME of "/v1/sessions/NAME/…".
inline std::string session_name(const http::Request& request) {
  const std::string& path = request.head.path;
  const size_t begin = std::string_view("/v1/sessions/").size();
  return path.substr(begin, path.find('/', begin) - begin);
}

// The reply, which ends when the session as it has made it is on the disk, where sessions are kept.
inline std::unique_ptr<http::Reply> saved_reply(const ServerContext& context,
                                                const std::string& owner, const std::string& id,
                                                std::unique_ptr<http::Reply> made) {
  if (!context.sessions->is_stored()) return made;
  return std::make_unique<SavedReply>(std::move(made), context.sessions, owner, id);
}

// The right to change the request's session. Errors: 404, 409.
Checked<std::unique_ptr<SessionTable::Change>> change_session(const RouteContext& context,
                                                              const http::Request& request);

}  // namespace cairn::serve
