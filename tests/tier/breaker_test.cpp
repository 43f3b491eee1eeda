// What fails is left alone, longer each time, and is tried again by one alone.
#include "tier/breaker.h"

#include <gtest/gtest.h>

namespace cairn::test::breaker_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tier::Breaker;

class BreakerTest : public ::testing::Test {
 protected:
  void fail(int times) {
    for (int index = 0; index < times; ++index) breaker_.note_failure(now_);
  }
  void pass(milliseconds time) { now_ += time; }

  Breaker breaker_{1};
  Breaker::Clock::time_point now_ = Breaker::Clock::now();
};

TEST_F(BreakerTest, FiveFailuresWithinTenSecondsOpenIt) {
  fail(4);
  EXPECT_TRUE(breaker_.admits(now_));
  pass(seconds(11));
  fail(4);
  EXPECT_TRUE(breaker_.admits(now_));
  fail(1);
  EXPECT_FALSE(breaker_.admits(now_));
  EXPECT_TRUE(breaker_.is_open(now_));
  EXPECT_EQ(breaker_.opened(), 1u);
}

TEST_F(BreakerTest, SuccessForgetsFailures) {
  fail(4);
  breaker_.note_success();
  fail(4);
  EXPECT_TRUE(breaker_.admits(now_));
}

// 5 s, 10, 20, 40, 60, 60, each a tenth shorter or longer at most.
TEST_F(BreakerTest, EachTrialThatFailsDoublesThePause) {
  fail(5);
  for (const int pause : {5, 10, 20, 40, 60, 60}) {
    pass(milliseconds(pause * 899));
    EXPECT_FALSE(breaker_.admits(now_)) << pause;
    pass(milliseconds(pause * 202));
    EXPECT_TRUE(breaker_.admits(now_)) << pause;
    EXPECT_FALSE(breaker_.admits(now_)) << "one tries at a time";
    fail(1);
  }
  pass(seconds(67));
  EXPECT_TRUE(breaker_.admits(now_));
  breaker_.note_success();
  EXPECT_TRUE(breaker_.admits(now_));
  fail(5);
  pass(milliseconds(5501));
  EXPECT_TRUE(breaker_.admits(now_)) << "the first pause again";
}

// Of a batch that was sent before, all of which fails.
TEST_F(BreakerTest, WhatIsHeardInAPauseDoesNotProlongIt) {
  fail(64);
  EXPECT_EQ(breaker_.opened(), 1u);
  pass(milliseconds(5501));
  EXPECT_TRUE(breaker_.admits(now_));
  fail(64);
  EXPECT_EQ(breaker_.opened(), 2u);
}

// It answers, and never delivers: the next pause is longer, as after a trial that fails.
TEST_F(BreakerTest, ATrialThatIsAnsweredLetsOthersAskAndForgetsNothing) {
  fail(4);
  breaker_.end_trial();
  fail(1);
  EXPECT_FALSE(breaker_.admits(now_));
  pass(milliseconds(5501));
  EXPECT_TRUE(breaker_.admits(now_));
  breaker_.end_trial();
  EXPECT_TRUE(breaker_.admits(now_));
  fail(1);
  pass(milliseconds(8999));
  EXPECT_FALSE(breaker_.admits(now_));
}

TEST_F(BreakerTest, ATrialOfWhichNothingIsHeardIsForgotten) {
  fail(5);
  pass(seconds(6));
  EXPECT_TRUE(breaker_.admits(now_));
  pass(seconds(59));
  EXPECT_FALSE(breaker_.admits(now_));
  pass(seconds(2));
  EXPECT_TRUE(breaker_.admits(now_));
}

// Of a machine whose records others have as well.
TEST_F(BreakerTest, OneFailureMayBeEnough) {
  Breaker breaker(1, 1);
  breaker.note_failure(now_);
  EXPECT_FALSE(breaker.admits(now_));
  EXPECT_TRUE(breaker.admits(now_ + milliseconds(5501)));
}

// Three wrong records within ten minutes block it for ten.
TEST_F(BreakerTest, WhoLiesIsBlocked) {
  EXPECT_FALSE(breaker_.note_refusal(now_));
  EXPECT_FALSE(breaker_.note_refusal(now_));
  pass(seconds(601));
  EXPECT_FALSE(breaker_.note_refusal(now_));
  EXPECT_FALSE(breaker_.note_refusal(now_));
  EXPECT_TRUE(breaker_.admits(now_));
  EXPECT_TRUE(breaker_.note_refusal(now_));
  EXPECT_FALSE(breaker_.admits(now_));
  breaker_.note_success();
  pass(seconds(599));
  EXPECT_FALSE(breaker_.admits(now_));
  pass(seconds(2));
  EXPECT_TRUE(breaker_.admits(now_));
}

TEST_F(BreakerTest, WhatIsBlockedIsNotTried) {
  breaker_.block(seconds(600), now_);
  breaker_.note_success();
  pass(seconds(599));
  EXPECT_FALSE(breaker_.admits(now_));
  EXPECT_TRUE(breaker_.is_open(now_));
  pass(seconds(2));
  EXPECT_TRUE(breaker_.admits(now_));
}

}  // namespace
}  // namespace cairn::test::breaker_test
