// When fetching is worth it, and how long it may take.
#include "tier/costs.h"

#include <gtest/gtest.h>

#include <random>

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
  EXPECT_FALSE(costs.computing(0, 1));
  EXPECT_FALSE(costs.fetching(1));
  costs.note_computed(15, Seconds(1));  // Too few to say anything.
  costs.note_fetched(65535, Seconds(1));
  EXPECT_FALSE(costs.computing(0, 1));
  EXPECT_FALSE(costs.fetching(1));
  const auto decision = decide_fetch(costs, {.bytes = 1 << 20, .end = 100});
  EXPECT_TRUE(decision.is_worth_it);
  EXPECT_DOUBLE_EQ(seconds_of(decision), 2);
}

TEST(Costs, FollowWhatIsMeasured) {
  Costs costs;
  costs.note_computed(100, Seconds(1));
  EXPECT_DOUBLE_EQ(costs.computing(0, 50)->count(), 0.5);
  costs.note_computed(100, Seconds(2));
  EXPECT_NEAR(costs.computing(0, 100)->count(), 1.2, 1e-12);
  costs.note_fetched(1 << 20, Seconds(1));
  costs.note_round_trip(Seconds(0.25));
  EXPECT_DOUBLE_EQ(costs.fetching(2 << 20)->count(), 2.25);
  EXPECT_DOUBLE_EQ(costs.bytes_per_second(), 1 << 20);
}

// A machine whose tokens take so long, in steps of 512, of prompts of many lengths: each step a
// fifth faster or slower than another one, and one in forty held up for ten times as long.
class Machine {
 public:
  Machine(double token_seconds, double depth_seconds)
      : token_seconds_(token_seconds), depth_seconds_(depth_seconds) {}

  double seconds(double begin, double end) const {
    return (end - begin) * (token_seconds_ + depth_seconds_ * 0.5 * (begin + end));
  }
  void work(Costs& costs, int prompts, int longest) {
    constexpr int kStep = 512;
    std::uniform_real_distribution<double> pace(0.8, 1.2);
    for (int prompt = 0; prompt < prompts; ++prompt) {
      const int length = kStep * (1 + int(random_() % uint32_t(longest / kStep)));
      for (int begin = 0; begin < length; begin += kStep) {
        const double held_up = random_() % 40 == 0 ? 10 : 1;
        costs.note_computed(kStep, Seconds(seconds(begin, begin + kStep) * pace(random_) * held_up),
                            begin + 0.5 * kStep);
      }
    }
  }

 private:
  double token_seconds_, depth_seconds_;
  std::mt19937 random_{7};
};

TEST(Costs, GrowWithTheDepth) {
  Machine machine(1e-3, 1e-7);  // At 10,000 twice as much as at the beginning.
  Costs costs;
  machine.work(costs, 30, 16384);
  for (const int begin : {0, 4000, 16000, 30000}) {
    const double expected = machine.seconds(begin, begin + 2000);
    EXPECT_NEAR(costs.computing(begin, begin + 2000)->count(), expected, 0.25 * expected) << begin;
  }
  // What comes next, however deep the last one was.
  const double whole = machine.seconds(0, 16384);
  EXPECT_NEAR(costs.computing(0, 16384)->count(), whole, 0.2 * whole);
}

TEST(Costs, AreTakenAsEqualWhereNothingSaysOtherwise) {
  Costs flat;
  Machine(1e-3, 0).work(flat, 30, 16384);
  EXPECT_NEAR(flat.computing(30000, 31000)->count(), 1, 0.3);
  EXPECT_NEAR(flat.computing(0, 1000)->count(), 1, 0.3);
  // All at one depth, or at none that is known.
  Costs narrow, unknown;
  std::mt19937 random(3);
  for (int step = 0; step < 200; ++step) {
    const Seconds time(0.1 + 0.02 * double(random() % 100) / 100);
    narrow.note_computed(100, time, 50.0 + double(random() % 3));
    unknown.note_computed(100, time);
  }
  EXPECT_NEAR(narrow.computing(100000, 101000)->count(), 1.1, 0.2);
  EXPECT_NEAR(unknown.computing(100000, 101000)->count(), 1.1, 0.2);
}

// Somebody else takes half of the machine, for good.
TEST(Costs, FollowAMachineThatBecomesSlower) {
  Costs costs;
  Machine(1e-3, 1e-7).work(costs, 30, 16384);
  Machine slower(2e-3, 2e-7);
  slower.work(costs, 6, 16384);
  const double expected = slower.seconds(0, 12000);
  EXPECT_NEAR(costs.computing(0, 12000)->count(), expected, 0.25 * expected);
}

// Less than nothing is not possible, whatever was measured.
TEST(Costs, AreNeverNegative) {
  std::mt19937 random(5);
  for (int machine = 0; machine < 100; ++machine) {
    Costs costs;
    for (int step = 0; step < 50; ++step) {
      const double depth = double(random() % 100000);
      costs.note_computed(100, Seconds(1e-6 * double(random() % 1000000)), depth);
      for (const int begin : {0, 1000, 200000}) {
        EXPECT_GE(costs.computing(begin, begin + 100)->count(), -1e-12);
      }
    }
  }
}

// The same tokens, deep in a context, are worth fetching where the first ones are not.
TEST(Costs, DeepTokensAreFetchedSooner) {
  Costs costs;
  Machine(1e-3, 1e-7).work(costs, 30, 32768);
  costs.note_fetched(100'000'000, Seconds(1));
  EXPECT_FALSE(decide_fetch(costs, {.bytes = 150'000'000, .end = 1000}).is_worth_it);
  EXPECT_TRUE(
      decide_fetch(costs, {.bytes = 150'000'000, .begin = 30000, .end = 31000}).is_worth_it);
}

// Four fifths of what computing takes are the limit.
TEST(Costs, WhatIsCheaperIsFetched) {
  Costs costs;
  costs.note_computed(100, Seconds(1));
  costs.note_fetched(1'000'000, Seconds(1));
  EXPECT_TRUE(decide_fetch(costs, {.bytes = 790'000, .end = 100}).is_worth_it);
  EXPECT_FALSE(decide_fetch(costs, {.bytes = 810'000, .end = 100}).is_worth_it);
  EXPECT_TRUE(decide_fetch(costs, {.bytes = 810'000, .end = 100, .always = true}).is_worth_it);
}

// Four times the estimate, but not half of computing, unless the estimate itself needs more.
TEST(Costs, PatienceEndsBeforeComputingWouldHave) {
  Costs costs;
  costs.note_computed(100, Seconds(10));
  costs.note_fetched(1'000'000, Seconds(1));
  EXPECT_NEAR(seconds_of(decide_fetch(costs, {.bytes = 1'000'000, .end = 100})), 4, 1e-9);
  EXPECT_NEAR(seconds_of(decide_fetch(costs, {.bytes = 3'000'000, .end = 100})), 5, 1e-9);
  EXPECT_NEAR(seconds_of(decide_fetch(costs, {.bytes = 6'000'000, .end = 100})), 7.5, 1e-9);
  EXPECT_NEAR(seconds_of(decide_fetch(costs, {.bytes = 1'000, .end = 100})), 0.05, 1e-9);
  EXPECT_NEAR(seconds_of(decide_fetch(costs, {.bytes = 20'000'000, .end = 100, .always = true})),
              80, 1e-9);
}

}  // namespace
}  // namespace cairn::test::costs_test
