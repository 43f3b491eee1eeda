// Tokens to text, one at a time: the exact bytes, never half a character. What a token leaves
// unfinished is held back (at most three bytes) until the next one or the end. O(1) a token: its
// own length. Knows nothing of what is generated. One detokenizer serves one text, on one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"
#include "tokenize/tokenizer.h"

namespace cairn::tokenize {

struct DetokenizeOptions {
  // The tokens are a whole text, not the continuation of one: the space that encoding put before it
  // (SPM, WPM) is left out.
  bool is_whole_text = false;
  bool show_control = false;  // Control tokens by name; otherwise they give no text.
};

class Detokenizer {
 public:
  // The tokenizer must outlive the detokenizer.
  explicit Detokenizer(const Tokenizer& tokenizer, DetokenizeOptions options = {});

  // The text that is now complete; it stays valid until the next call. Bytes that can never become
  // a character are passed on as they are. REQUIRES: the tokenizer holds the token.
  std::string_view push(Token token);
  // What was held back. The detokenizer then stands at the start of a text again.
  std::string_view flush();

 private:
  const Tokenizer& tokenizer_;
  DetokenizeOptions options_;
  bool drops_space_;
  std::string text_;  // What the last call handed out, then what it held back.
  size_t handed_out_ = 0;
};

// All at once. REQUIRES: the tokenizer holds the tokens.
std::string decode(const Tokenizer& tokenizer, std::span<const Token> tokens,
                   DetokenizeOptions options = {});

}  // namespace cairn::tokenize
