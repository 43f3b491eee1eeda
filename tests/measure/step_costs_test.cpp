// The least time that a step can take. How bytes and operations are counted is tested with whole
// models, in speed_samples_test.cpp.
#include "measure/step_costs.h"

#include <gtest/gtest.h>

namespace cairn::measure::step_costs_test {
namespace {

TEST(StepCosts, TheLimitIsReadingOrComputing) {
  const MachineLimits limits{
      .read_bytes_per_second = 1000, .integer_ops_per_second = 100, .float_ops_per_second = 10};
  const StepCosts reading{.weight_bytes = 500, .kv_bytes = 300, .state_bytes = 200};
  EXPECT_DOUBLE_EQ(least_seconds(reading, limits), 1);
  const StepCosts computing{.weight_bytes = 500, .integer_ops = 50, .float_ops = 15};
  EXPECT_DOUBLE_EQ(least_seconds(computing, limits), 2);
  // What could not be measured limits nothing.
  EXPECT_DOUBLE_EQ(least_seconds(computing, {.read_bytes_per_second = 1000}), 0.5);
}

}  // namespace
}  // namespace cairn::measure::step_costs_test
