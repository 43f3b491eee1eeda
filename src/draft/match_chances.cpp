// The regression: what it says, and one step down the gradient of the logarithmic loss.
#include "draft/match_chances.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cairn::draft {

namespace {

// Fitted to replayed answers, source text and documentation; a longer match says no more.
constexpr float kOffset = -0.6f;
constexpr float kAmbiguousOffset = -3;
constexpr float kSlope = 1.2f;
constexpr int32_t kLengthMost = 64;

// Steps down the gradient: of the lines, which every token teaches, and of a token's weight, which
// is taught rarely.
constexpr float kLineRate = 0.02f;
constexpr float kTokenRate = 0.4f;

float log_length(int32_t length) {
  return std::log(float(std::clamp(length, 1, kLengthMost)));
}

}  // namespace

MatchChances::MatchChances()
    : unambiguous_{.offset = kOffset, .slope = kSlope},
      ambiguous_{.offset = kAmbiguousOffset, .slope = kSlope} {}

// Fibonacci hashing.
size_t MatchChances::place_of(Token token) {
  constexpr auto kBits = std::bit_width(kTokenWeights - 1);
  return size_t(uint32_t(index_of(token)) * 0x9e3779b1u >> (32 - kBits));
}

float MatchChances::chance(const Evidence& evidence) const {
  const Line& line = evidence.is_ambiguous ? ambiguous_ : unambiguous_;
  const float log_odds = line.offset + line.slope * log_length(evidence.length) +
                         before_[place_of(evidence.before)] + token_[place_of(evidence.token)];
  return 1 / (1 + std::exp(-log_odds));
}

void MatchChances::learn(const Evidence& evidence, bool is_right) {
  const float error = (is_right ? 1.0f : 0.0f) - chance(evidence);
  Line& line = evidence.is_ambiguous ? ambiguous_ : unambiguous_;
  line.offset += kLineRate * error;
  line.slope += kLineRate * error * log_length(evidence.length);
  before_[place_of(evidence.before)] += kTokenRate * error;
  token_[place_of(evidence.token)] += kTokenRate * error;
}

}  // namespace cairn::draft
