// DRY's sequence breakers, at which repetitions end. Breakers are texts that need not begin and end
// at token borders: one is found as a token that contains it, or as a token that contains its
// beginning, followed by the tokens of the rest (as in the original by pi6am, 2024). Thread-safe:
// constant once built.
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

  // Whether the token alone is a breaker.
  bool is_breaker(Token token) const;
  // The number of tokens after the last breaker, which is the longest repetition that counts.
  size_t repetition_limit(std::span<const Token> tokens) const;

 private:
  std::vector<std::vector<Token>> sequences_;  // Ascending.
};

}  // namespace cairn::sample
