// How likely the token behind a match is what follows this time too: a logistic regression on what
// is known of the match and of the token, which learns from each token that comes. Knows no texts.
// Thread rule: the engine's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"

namespace cairn::draft {

// Shorter matches are chance.
inline constexpr int32_t kMatchLeast = 2;

class MatchChances {
 public:
  struct Evidence {
    int32_t length = 0;  // Of the match, 1 or more.
    // Different tokens followed the same match before.
    bool is_ambiguous = false;
    Token before = Token(0);  // The last token of the match.
    Token token = Token(0);   // What is said to follow.
  };

  MatchChances();

  float chance(const Evidence& evidence) const;
  // What followed was the token, or another one.
  void learn(const Evidence& evidence, bool is_right);

 private:
  // The logarithm of the odds is this line in the logarithm of the match's length, plus a weight of
  // each of both tokens: some tokens (numbers, names) often begin what is new.
  struct Line {
    float offset;
    float slope;
  };
  // Tokens that share a weight are chance: two of several thousand.
  static constexpr size_t kTokenWeights = 4096;
  using TokenWeights = std::array<float, kTokenWeights>;
  static size_t place_of(Token token);

  Line unambiguous_;
  Line ambiguous_;
  TokenWeights before_ = {};
  TokenWeights token_ = {};
};

}  // namespace cairn::draft
