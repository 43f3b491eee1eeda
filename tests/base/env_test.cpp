// Set, set to nothing, not set.
#include "base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace cairn::env_test {
namespace {

TEST(Env, TellsUnsetFromEmpty) {
  ASSERT_EQ(::setenv("CAIRN_TEST_VARIABLE", "value", 1), 0);
  EXPECT_EQ(env("CAIRN_TEST_VARIABLE"), "value");
  ASSERT_EQ(::setenv("CAIRN_TEST_VARIABLE", "", 1), 0);
  EXPECT_EQ(env("CAIRN_TEST_VARIABLE"), "");
  ASSERT_EQ(::unsetenv("CAIRN_TEST_VARIABLE"), 0);
  EXPECT_EQ(env("CAIRN_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace cairn::env_test
