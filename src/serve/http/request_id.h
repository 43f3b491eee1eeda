// The name of a request in logs, headers and errors. Thread-safe.
#pragma once

#include <string>

#include "serve/http/message.h"

namespace cairn::serve::http {

// The client's (X-Request-Id), where it can do no harm in logs and headers: 1 to 128 letters,
// digits, ".", "_" and "-". Else "req-" and a random number.
std::string request_id(const RequestHead& head);

}  // namespace cairn::serve::http
