// The markers of a call format as nodes of a grammar: control tokens of the vocabulary as tokens,
// since text never spells them; the rest as text. Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar.h"
#include "tokenize/tokenizer.h"

namespace cairn::chat {

class MarkerNodes {
 public:
  // `tokenizer`: null where all is text. REQUIRES: both outlive this.
  MarkerNodes(grammar::Builder* builder, const tokenize::Tokenizer* tokenizer);

  grammar::Builder& builder() { return *builder_; }
  // Exactly this text, up to a token that ends generation.
  grammar::Node marker(std::string_view text);
  // The same without the white space around it.
  grammar::Node trimmed(std::string_view text);
  // Any text in which none of these occurs; empty ones do not count.
  grammar::Node without(std::vector<std::string> never);
  // Any text and then, where it occurs first, `end`; none of `never` before.
  grammar::Node until(std::string_view end, std::vector<std::string> never = {});
  // Nothing, a space, or one or two line ends and at most 8 spaces.
  grammar::Node blanks();

 private:
  grammar::Builder* builder_;
  std::vector<std::pair<std::string_view, Token>> controls_;  // The longest first.
  std::vector<std::string_view> ends_;
  grammar::Node blanks_{};
  bool has_blanks_ = false;
};

}  // namespace cairn::chat
