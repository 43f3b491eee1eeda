// The routes and fields as an OpenAPI 3.1 document. Thread-safe: pure.
#pragma once

#include <string>

#include "sample/params.h"

namespace cairn::serve {

// `defaults`: what holds where a request says nothing of sampling.
std::string openapi_text(const sample::SamplingParams& defaults);

}  // namespace cairn::serve
