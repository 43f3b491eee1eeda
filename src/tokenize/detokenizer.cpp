// The buffer holds at most one piece and three bytes.
#include "tokenize/detokenizer.h"

#include "unicode/unicode.h"

namespace cairn::tokenize {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, DetokenizeOptions options)
    : tokenizer_(tokenizer),
      options_(options),
      drops_space_(options.is_whole_text && tokenizer.adds_space_prefix()) {}

std::string_view Detokenizer::push(Token token) {
  text_.erase(0, handed_out_);
  handed_out_ = 0;
  if (options_.show_control || !tokenizer_.is_control(token)) {
    std::string_view piece = tokenizer_.piece(token);
    if (drops_space_ && !tokenizer_.is_control(token)) {
      if (piece.starts_with(' ')) piece.remove_prefix(1);
      drops_space_ = false;
    }
    text_ += piece;
  }
  handed_out_ = text_.size() - unicode::unfinished_utf8_bytes(text_);
  return std::string_view(text_).substr(0, handed_out_);
}

std::string_view Detokenizer::flush() {
  text_.erase(0, handed_out_);
  handed_out_ = text_.size();
  drops_space_ = options_.is_whole_text && tokenizer_.adds_space_prefix();
  return text_;
}

std::string decode(const Tokenizer& tokenizer, std::span<const Token> tokens,
                   DetokenizeOptions options) {
  Detokenizer detokenizer(tokenizer, options);
  std::string text;
  for (const Token token : tokens) text += detokenizer.push(token);
  text += detokenizer.flush();
  return text;
}

}  // namespace cairn::tokenize
