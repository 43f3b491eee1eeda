// What is said before anything came, and what is learned from what comes.
#include "draft/match_chances.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random_stream.h"

namespace cairn::draft::match_chances_test {
namespace {

using Evidence = MatchChances::Evidence;

TEST(MatchChances, LongerMatchesAreLikelierAndAmbiguousOnesLessSo) {
  const MatchChances chances;
  float before = 0;
  for (int32_t length = 1; length <= 64; ++length) {
    const float chance = chances.chance({.length = length});
    EXPECT_GT(chance, before) << length;
    EXPECT_LT(chances.chance({.length = length, .is_ambiguous = true}), chance) << length;
    before = chance;
  }
  EXPECT_LT(before, 1);
  EXPECT_EQ(chances.chance({.length = 65}), before);
  EXPECT_EQ(chances.chance({.length = 0}), chances.chance({.length = 1}));
}

// Rates that depend on the token, on the one before it, on ambiguity: each is found, beside others.
TEST(MatchChances, LearnHowOftenWhatIsLikeThisWasRight) {
  struct Kind {
    Evidence evidence;
    float rate;
    double said = 0;
  };
  constexpr Token kOne = Token(6), kOther = Token(7);
  Kind kinds[] = {{{.length = 5, .before = kOne, .token = kOne}, 0.95f},
                  {{.length = 5, .before = kOne, .token = kOther}, 0.1f},
                  {{.length = 5, .before = kOther, .token = kOne}, 0.5f},
                  {{.length = 5, .is_ambiguous = true, .before = kOne, .token = kOne}, 0.3f}};
  RandomStream random(3, 0, 0);
  MatchChances chances;
  constexpr int32_t kSkipped = 2000, kCounted = 4000;
  for (int32_t i = 0; i < kSkipped + kCounted; ++i) {
    for (Kind& kind : kinds) {
      if (i >= kSkipped) kind.said += double(chances.chance(kind.evidence)) / kCounted;
      chances.learn(kind.evidence, float(random.below(1000)) < 1000 * kind.rate);
    }
  }
  for (const Kind& kind : kinds) EXPECT_NEAR(kind.said, double(kind.rate), 0.08) << kind.rate;
}

TEST(MatchChances, AreChancesWhateverIsTaught) {
  MatchChances chances;
  for (const bool is_right : {true, false}) {
    for (int32_t i = 0; i < 100000; ++i) {
      chances.learn({.length = std::numeric_limits<int32_t>::max(), .token = Token(-5)}, is_right);
    }
    for (const int32_t length : {std::numeric_limits<int32_t>::min(), 1, 50}) {
      const float chance = chances.chance({.length = length, .token = Token(-5)});
      EXPECT_GE(chance, 0);
      EXPECT_LE(chance, 1);
    }
  }
}

}  // namespace
}  // namespace cairn::draft::match_chances_test
