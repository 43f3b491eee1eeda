// `cairn tokenize`: shows what a model's tokenizer makes of a text, one token a line or as JSON.
// Everything that comes from the model or the text is made harmless for a terminal.
// Thread rule: pure but for reading and printing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "gguf/gguf.h"
#include "tokenize/tokenizer.h"

namespace cairn::cli {

struct TokenizeOptions {
  std::string model;                // A GGUF file.
  std::optional<std::string> text;  // A file; without it standard input is read.
  bool add_special = false;         // --special: BOS, EOS and the like, as the model wants them.
  bool parse_special = false;       // --parse-special: recognise special tokens in the text.
  bool json = false;
};

// Gives `write`, part by part, lines "id  piece", each ending in a line feed, all control
// characters escaped. JSON: one array of {"id", "piece"}, ASCII only; a piece that is no UTF-8 is
// an array of its bytes.
void report_tokens(const tokenize::Tokenizer& tokenizer, std::string_view text,
                   const TokenizeOptions& options, FunctionRef<void(std::string_view)> write);

}  // namespace cairn::cli
