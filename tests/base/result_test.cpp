// Values, errors, and how CAIRN_TRY hands them on.
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace cairn::result_test {
namespace {

Result<int> half_of(int value) {
  if (value % 2 != 0) {
    return fail(ErrorCode::invalid_argument, "value: expected an even number, found {}", value);
  }
  return value / 2;
}

Status expect_small(int value) {
  if (value > 10) return fail(ErrorCode::no_room, "value: expected at most 10, found {}", value);
  return Ok{};
}

Result<int> quarter_of(int value) {
  CAIRN_TRY(const int half, half_of(value));
  CAIRN_TRY(expect_small(half));
  CAIRN_TRY(int quarter, half_of(half));
  return quarter;
}

TEST(Result, HoldsAValueOrAnError) {
  ASSERT_TRUE(quarter_of(12));
  EXPECT_EQ(quarter_of(12).value(), 3);
  EXPECT_EQ(quarter_of(7).error().message, "value: expected an even number, found 7");
  EXPECT_EQ(quarter_of(6).error().message, "value: expected an even number, found 3");
  EXPECT_EQ(quarter_of(40).error().code, ErrorCode::no_room);
}

TEST(Result, CarriesWhatOnlyMoves) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result);
  const std::unique_ptr<int> owned = std::move(result).value();
  EXPECT_EQ(*owned, 5);
}

TEST(ResultDeathTest, TheWrongHalfIsAMistake) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)half_of(1).value(), "check failed");
  EXPECT_DEATH((void)half_of(2).error(), "check failed");
}

}  // namespace
}  // namespace cairn::result_test
