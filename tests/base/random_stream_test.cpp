// Numbers of a random stream are spread as they should be.
#include "base/random_stream.h"

#include <gtest/gtest.h>

namespace cairn::random_stream_test {
namespace {

TEST(RandomStream, MeanAndSpreadAreThoseOfANormalNumber) {
  RandomStream random(1, 2, 3);
  double sum = 0, sum_squares = 0;
  constexpr int kCount = 1000000;
  for (int i = 0; i < kCount; ++i) {
    const double value = double(random.normal());
    sum += value;
    sum_squares += value * value;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.005);
  EXPECT_NEAR(sum_squares / kCount, 1, 0.005);
}

}  // namespace
}  // namespace cairn::random_stream_test
