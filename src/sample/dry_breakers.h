// Where repetitions end for DRY: breakers are texts, but tokens need not begin and end where they
// do. So a breaker is found as a token that holds it, or as one that holds its beginning, followed
// by the tokens of the rest (as in the original by pi6am, 2024).
// Thread-safe: constant once built.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace cairn::tokenize {
class Tokenizer;
}

namespace cairn::sample {

class DryBreakers {
 public:
  // Breakers by their tokens: the head, then what must follow it.
  explicit DryBreakers(std::vector<std::vector<Token>> sequences);
  // Looks at the text of every token.
  DryBreakers(const tokenize::Tokenizer& tokenizer, std::span<const std::string> texts);

  // The token alone is one.
  bool is_breaker(Token token) const;
  // How many tokens lie behind the last breaker: no repetition counts for more.
  size_t repetition_limit(std::span<const Token> tokens) const;

 private:
  std::vector<std::vector<Token>> sequences_;  // Ascending.
};

}  // namespace cairn::sample
