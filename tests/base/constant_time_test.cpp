// Equal means all bytes, and as many.
#include "base/constant_time.h"

#include <gtest/gtest.h>

#include <string_view>

namespace cairn::constant_time_test {
namespace {

using std::string_view_literals::operator""sv;

TEST(ConstantTime, ComparesAllBytes) {
  EXPECT_TRUE(is_equal_in_constant_time("same"sv, "same"sv));
  EXPECT_FALSE(is_equal_in_constant_time("same"sv, "samf"sv));
  EXPECT_FALSE(is_equal_in_constant_time("same"sv, "rame"sv));
  EXPECT_FALSE(is_equal_in_constant_time("same"sv, "sam"sv));
}

}  // namespace
}  // namespace cairn::constant_time_test
