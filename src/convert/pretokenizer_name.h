// Which of GGUF's pre-tokenizers a tokenizer.json describes: recognised by its structure and its
// regular expressions, whatever the vocabulary. Pure; any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "convert/family.h"
#include "convert/json.h"

namespace cairn::convert {

// The value of tokenizer.ggml.pre. Of names that cut alike the family's. Errors: unsupported
// (cuts in a way that has no name here).
Result<std::string_view> pretokenizer_name(const Json& tokenizer, const Family& family);

}  // namespace cairn::convert
