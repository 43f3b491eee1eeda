// The input of a response as it is told again. Thread-safe: pure.
#pragma once

#include <string_view>
#include <vector>

#include "json/value.h"
#include "serve/response_table.h"

namespace cairn::serve::openai {

// The items of a request's `input`, each as it was sent, with what items have that are told: an id
// of the response's where it has none, a type, a status, and content as a list of parts. A string
// is a message of the user. REQUIRES: read_responses_request() took it.
std::vector<InputItem> input_items(const json::Value& input, std::string_view response_id);

}  // namespace cairn::serve::openai
