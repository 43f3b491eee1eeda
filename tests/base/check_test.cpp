// A broken program stops and says where.
#include "base/check.h"

#include <gtest/gtest.h>

namespace cairn::check_test {
namespace {

TEST(CheckDeathTest, StopsWithPlaceAndCondition) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  CHECK(1 + 1 == 2);
  EXPECT_DEATH(CHECK(1 + 1 == 3), "check_test.cpp:[0-9]+: check failed: 1 \\+ 1 == 3");
}

TEST(CheckDeathTest, TheDebugFormCostsNothingInARelease) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  int evaluations = 0;
#ifdef CAIRN_DEBUG_CHECKS
  DCHECK(++evaluations > 0);
  EXPECT_EQ(evaluations, 1);
  EXPECT_DEATH(DCHECK(evaluations == 0), "check failed");
#else
  DCHECK(++evaluations > 5);
  EXPECT_EQ(evaluations, 0);
#endif
}

}  // namespace
}  // namespace cairn::check_test
