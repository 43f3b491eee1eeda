// When fetching is worth it, and how long it may take.
#include "tier/costs.h"

#include <gtest/gtest.h>

namespace cairn::test::costs_test {
namespace {

using Seconds = tier::Costs::Seconds;
using tier::Costs;
using tier::decide_fetch;

double seconds_of(const tier::FetchDecision& decision) {
  return Seconds(decision.patience).count();
}

TEST(Costs, SaysNothingOfWhatWasNotMeasured) {
  Costs costs;
  EXPECT_FALSE(costs.computing(1));
  EXPECT_FALSE(costs.fetching(1));
  costs.note_computed(15, Seconds(1));  // Too few to say anything.
  costs.note_fetched(65535, Seconds(1));
  EXPECT_FALSE(costs.computing(1));
  EXPECT_FALSE(costs.fetching(1));
  const auto decision = decide_fetch(costs, 1 << 20, 100, false);
  EXPECT_TRUE(decision.is_worth_it);
  EXPECT_DOUBLE_EQ(seconds_of(decision), 2);
}

TEST(Costs, FollowWhatIsMeasured) {
  Costs costs;
  costs.note_computed(100, Seconds(1));
  EXPECT_DOUBLE_EQ(costs.computing(50)->count(), 0.5);
  costs.note_computed(100, Seconds(2));
  EXPECT_NEAR(costs.computing(100)->count(), 1.2, 1e-12);
  costs.note_fetched(1 << 20, Seconds(1));
  costs.note_round_trip(Seconds(0.25));
  EXPECT_DOUBLE_EQ(costs.fetching(2 << 20)->count(), 2.25);
  EXPECT_DOUBLE_EQ(costs.bytes_per_second(), 1 << 20);
}

// Four fifths of what computing takes are the limit.
TEST(Costs, WhatIsCheaperIsFetched) {
  Costs costs;
  costs.note_computed(100, Seconds(1));
  costs.note_fetched(1'000'000, Seconds(1));
  EXPECT_TRUE(decide_fetch(costs, 790'000, 100, false).is_worth_it);
  EXPECT_FALSE(decide_fetch(costs, 810'000, 100, false).is_worth_it);
  EXPECT_TRUE(decide_fetch(costs, 810'000, 100, true).is_worth_it);
}

// Twice the estimate, but not half of computing, unless the estimate itself needs more.
TEST(Costs, PatienceEndsBeforeComputingWouldHave) {
  Costs costs;
  costs.note_computed(100, Seconds(10));
  costs.note_fetched(1'000'000, Seconds(1));
  EXPECT_NEAR(seconds_of(decide_fetch(costs, 1'000'000, 100, false)), 2, 1e-9);
  EXPECT_NEAR(seconds_of(decide_fetch(costs, 3'000'000, 100, false)), 5, 1e-9);
  EXPECT_NEAR(seconds_of(decide_fetch(costs, 6'000'000, 100, false)), 7.5, 1e-9);
  EXPECT_NEAR(seconds_of(decide_fetch(costs, 1'000, 100, false)), 0.05, 1e-9);
  EXPECT_NEAR(seconds_of(decide_fetch(costs, 20'000'000, 100, true)), 40, 1e-9);
}

}  // namespace
}  // namespace cairn::test::costs_test
