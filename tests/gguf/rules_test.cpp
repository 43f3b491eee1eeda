// The shared rules at the borders of their ranges; their errors are tested with the attacks.
#include "gguf/rules.h"

#include <gtest/gtest.h>

namespace cairn::gguf::rules_test {
namespace {

bool shape_fits(std::vector<uint64_t> dims, uint32_t type_id = 0) {
  return bool(check_shape("w", dims, type_id));
}

TEST(Rules, ShapesAtTheBorders) {
  EXPECT_TRUE(shape_fits({1}));
  EXPECT_TRUE(shape_fits({1, 1, 1, 1}));
  EXPECT_FALSE(shape_fits({}));
  EXPECT_FALSE(shape_fits({1, 1, 1, 1, 1}));
  EXPECT_TRUE(shape_fits({uint64_t(1) << 40}));
  EXPECT_FALSE(shape_fits({(uint64_t(1) << 40) + 1}));
  EXPECT_TRUE(shape_fits({uint64_t(1) << 40, 256}));
  EXPECT_FALSE(shape_fits({uint64_t(1) << 40, 257}));
  EXPECT_TRUE(shape_fits({32}, 8));
  EXPECT_FALSE(shape_fits({31}, 8));
  EXPECT_FALSE(shape_fits({32, 0}, 8));
  auto extent = check_shape("w", std::vector<uint64_t>{64, 3}, 8);
  ASSERT_TRUE(extent);
  EXPECT_EQ(extent->weight_count, 192);
  EXPECT_EQ(extent->bytes, 6u * 34u);
}

TEST(Rules, NamesAtTheBorders) {
  EXPECT_TRUE(check_key("k", "a"));
  EXPECT_TRUE(check_key("k", std::string(65535, 'a')));
  EXPECT_FALSE(check_key("k", std::string(65536, 'a')));
  EXPECT_FALSE(check_key("k", "a\x7f"));
  EXPECT_TRUE(check_key("k", " ~"));
  EXPECT_TRUE(check_tensor_name("t", std::string(64, 'a')));
  EXPECT_FALSE(check_tensor_name("t", std::string(65, 'a')));
}

TEST(Rules, AlignmentsAtTheBorders) {
  for (uint64_t alignment = 8; alignment <= 65536; alignment *= 2) {
    EXPECT_TRUE(check_alignment(alignment)) << alignment;
    EXPECT_FALSE(check_alignment(alignment + 1)) << alignment;
  }
  EXPECT_FALSE(check_alignment(0));
  EXPECT_FALSE(check_alignment(4));
  EXPECT_FALSE(check_alignment(131072));
}

TEST(Rules, ShownTextIsOneLine) {
  EXPECT_EQ(shown("a\nb\tc\x1b"), "a\\nb\\tc\\x1b");
  EXPECT_EQ(shown("abcdef", 3), "abc…");
  EXPECT_EQ(shown(std::string(1000, 'x')).size(), 128u + 3u);
}

}  // namespace
}  // namespace cairn::gguf::rules_test
