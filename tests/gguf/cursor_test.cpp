// The cursor, and the checked numbers of files (gguf/file_int.h).
#include "gguf/cursor.h"

#include <gtest/gtest.h>

#include <array>

namespace cairn::gguf::cursor_test {
namespace {

constexpr std::array<std::byte, 5> kFive = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                            std::byte{5}};

TEST(Cursor, TakesWhatIsThereAndNothingElse) {
  Cursor cursor(kFive);
  EXPECT_EQ(cursor.remaining(), 5u);
  auto number = cursor.u32("number");
  ASSERT_TRUE(number);
  EXPECT_EQ(*number, 0x04030201u);
  EXPECT_EQ(cursor.position(), 4u);
  auto more = cursor.u32("more");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "more: declares 4 bytes, 1 bytes remain (at byte 4)");
  EXPECT_EQ(cursor.position(), 4u);  // A failed read does not move.
  EXPECT_FALSE(cursor.take(FileInt(UINT64_MAX)).has_value());
  EXPECT_TRUE(cursor.take(FileInt(1)).has_value());
  EXPECT_TRUE(cursor.take(FileInt(0)).has_value());
  EXPECT_FALSE(cursor.take(FileInt(1)).has_value());
}

TEST(Cursor, EmptyBytesHoldNothing) {
  Cursor cursor({});
  EXPECT_EQ(cursor.remaining(), 0u);
  EXPECT_FALSE(cursor.u64("x"));
}

TEST(FileInt, OperatorsFailWhereTheyWouldWrap) {
  auto sum = FileInt(UINT64_MAX) + FileInt(1);
  ASSERT_FALSE(sum);
  EXPECT_NE(sum.error().message.find("18446744073709551615 + 1"), std::string::npos);
  auto product = FileInt(uint64_t(1) << 32) * FileInt(uint64_t(1) << 32);
  ASSERT_FALSE(product);
  EXPECT_NE(product.error().message.find("4294967296 * 4294967296"), std::string::npos);
  auto fits = FileInt(uint64_t(1) << 32) * FileInt((uint64_t(1) << 32) - 1);
  ASSERT_TRUE(fits);
  EXPECT_EQ(fits->value(), 0xffffffff00000000u);
  auto largest = FileInt(UINT64_MAX - 1) + FileInt(1);
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->value(), UINT64_MAX);
}

TEST(FileInt, AlignsUpwardsOrFails) {
  const auto aligned = [](uint64_t value) {
    auto result = FileInt(value).aligned_to(32);
    return result ? result->value() : 1;
  };
  EXPECT_EQ(aligned(0), 0u);
  EXPECT_EQ(aligned(1), 32u);
  EXPECT_EQ(aligned(32), 32u);
  EXPECT_EQ(aligned(UINT64_MAX - 31), UINT64_MAX - 31);
  EXPECT_EQ(aligned(UINT64_MAX - 30), 1u);
}

}  // namespace
}  // namespace cairn::gguf::cursor_test
