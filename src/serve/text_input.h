// Texts as requests give them: a string, a list of strings, token ids, or lists of token ids.
// Thread-safe: pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "serve/fields.h"
#include "tokenize/tokenizer.h"

namespace cairn::serve {

// Either of the two.
struct TextInput {
  std::optional<std::string> text;
  std::vector<Token> tokens;
};

// At least one. Ids are not looked at.
Checked<std::vector<TextInput>> read_text_inputs(const Body& body, std::string_view field,
                                                 size_t count_max);

// Token ids: whole numbers of 31 bits.
Checked<std::vector<Token>> read_tokens(const json::Value& list, std::string_view field);

// REQUIRES: the tokenizer holds the tokens.
std::string text_of(const TextInput& input, const tokenize::Tokenizer& tokenizer);

}  // namespace cairn::serve
