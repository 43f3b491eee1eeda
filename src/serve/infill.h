// A gap in a text as a prompt, by the model's tokens for that. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "serve/refusal.h"
#include "tokenize/tokenizer.h"

namespace cairn::serve {

struct InfillFile {
  std::string name, text;
};

struct Infill {
  std::vector<Token> before;
  std::string_view after;
  std::string_view begun = {};             // What the text in the gap begins with.
  std::span<const InfillFile> files = {};  // Others than the one with the gap.
};

struct InfillPrompt {
  std::vector<Token> tokens;
  size_t left_out_files = 0;  // The first ones, because there was no room for all.
};

// `token_count_max`: beyond it files are left out, and nothing else. Errors: 501 where the model
// has no such tokens.
Checked<InfillPrompt> encode_infill(const tokenize::Tokenizer& tokenizer, const Infill& infill,
                                    int64_t token_count_max);

}  // namespace cairn::serve
