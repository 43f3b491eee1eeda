// The routes and fields as an OpenAPI 3.1 document. Thread-safe: pure.
#pragma once

#include <string>

namespace cairn::serve {

std::string openapi_text();

}  // namespace cairn::serve
