// What the routes of sessions have in common. Thread-safe: pure.
#pragma once

#include <memory>
#include <string>

#include "serve/routes/answering.h"
#include "serve/sessions/session_json.h"

namespace cairn::serve {

// NAME of "/v1/sessions/NAME/…".
inline std::string session_name(const http::Request& request) {
  const std::string& path = request.head.path;
  const size_t begin = std::string_view("/v1/sessions/").size();
  return path.substr(begin, path.find('/', begin) - begin);
}

// The right to change the request's session. Errors: 404, 409.
Checked<std::unique_ptr<SessionTable::Change>> change_session(const RouteContext& context,
                                                              const http::Request& request);

}  // namespace cairn::serve
