// What fits into a step, as learned from made-up machines.
#include "engine/schedule/step_time.h"

#include <gtest/gtest.h>

#include <random>

namespace cairn::step_time_test {
namespace {

TEST(StepTime, BeginsWithFewRowsWhereSomebodyWaits) {
  const StepTime time;
  EXPECT_EQ(time.prompt_row_seconds(), 0);
  EXPECT_EQ(time.prompt_rows(0, 1.0, 16, 512), 512);
  EXPECT_EQ(time.prompt_rows(4, 1.0, 16, 512), 16);
  EXPECT_EQ(time.prompt_rows(4, 1.0, 16, 8), 8);
  EXPECT_EQ(time.decode_seconds(7), 0);
}

// A machine on which reading the weights takes 10 ms, and each row of a prompt 1 ms.
TEST(StepTime, FindsTheRowsThatFit) {
  StepTime time;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(0.8, 1.25);
  const auto take = [&](int32_t decode_rows, int32_t prompt_rows) {
    time.learn(decode_rows, prompt_rows, (0.010 + 0.001 * prompt_rows) * noise(random));
  };
  for (int round = 0; round < 50; ++round) {
    take(4, 0);
    take(4, time.prompt_rows(4, 0.050, 16, 512));
  }
  EXPECT_GT(time.prompt_row_seconds(), 0);
  EXPECT_NEAR(time.decode_seconds(4), 0.010, 0.003);
  EXPECT_NEAR(time.decode_seconds(5), 0.010, 0.003);
  const int32_t rows = time.prompt_rows(4, 0.050, 16, 512);
  EXPECT_GE(rows, 25);
  EXPECT_LE(rows, 60);
  EXPECT_EQ(time.prompt_rows(4, 10.0, 16, 512), 512);
  EXPECT_EQ(time.prompt_rows(4, 0.001, 16, 512), 16);
}

TEST(StepTime, OneSlowStepChangesLittle) {
  StepTime time;
  for (int round = 0; round < 20; ++round) time.learn(0, 100, 0.1);
  const int32_t before = time.prompt_rows(0, 0.2, 1, 512);
  time.learn(0, 100, 60.0);
  EXPECT_GE(time.prompt_rows(0, 0.2, 1, 512), before * 3 / 4);
}

}  // namespace
}  // namespace cairn::step_time_test
