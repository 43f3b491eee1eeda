// What was used before, however prompts part, and what is forgotten.
#include "tier/use_counts.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::test::use_counts_test {
namespace {

using Tokens = std::vector<Token>;

Tokens tokens(int32_t count, int32_t same, int32_t seed) {
  Tokens made;
  for (int32_t index = 0; index < count; ++index) {
    made.push_back(Token(index < same ? index : index + 1000 * seed));
  }
  return made;
}

int32_t add(tier::UseCounts& counts, const Tokens& prompt) {
  return counts.add_prompt(store::Chain({}, prompt), int32_t(prompt.size()));
}

TEST(UseCounts, WhatBeginsAlikeWasUsedBefore) {
  tier::UseCounts counts;
  EXPECT_EQ(add(counts, tokens(200, 100, 1)), 0);
  EXPECT_EQ(add(counts, tokens(200, 100, 2)), 96);  // Whole links.
  EXPECT_EQ(add(counts, tokens(200, 100, 2)), 200);
  EXPECT_EQ(add(counts, tokens(192, 192, 0)), 96);
}

TEST(UseCounts, AnAnswerIsUsedForTheFirstTimeWhenItIsMade) {
  tier::UseCounts counts;
  const Tokens turn = tokens(150, 150, 0);
  const Tokens prompt(turn.begin(), turn.begin() + 70);
  EXPECT_EQ(add(counts, prompt), 0);
  counts.add_answer(store::Chain({}, turn), 150);
  Tokens next = turn;
  next.resize(230, Token(7));
  EXPECT_EQ(add(counts, next), 128);
}

// The end of an answer counts once, however often it is asked about.
TEST(UseCounts, AnAnswerAloneIsNotUsedTwice) {
  tier::UseCounts counts;
  const Tokens turn = tokens(150, 150, 0);
  const store::Chain chain({}, turn);
  counts.add_answer(chain, 150);
  counts.add_answer(chain, 150);
  EXPECT_EQ(counts.add_prompt(chain, 150), 150);
}

TEST(UseCounts, OldOnesAreForgotten) {
  tier::UseCounts counts(8);
  const Tokens old = tokens(64, 64, 0);
  add(counts, old);
  for (int32_t seed = 1; seed <= 3; ++seed) add(counts, tokens(64, 0, seed));
  EXPECT_EQ(add(counts, old), 64) << "of the generation before";
  for (int32_t seed = 4; seed <= 15; ++seed) add(counts, tokens(64, 0, seed));
  EXPECT_EQ(add(counts, old), 0);
}

}  // namespace
}  // namespace cairn::test::use_counts_test
