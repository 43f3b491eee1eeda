// Amounts as people write and read them.
#include "base/quantities.h"

#include <gtest/gtest.h>

#include <utility>

namespace cairn::quantities_test {
namespace {

TEST(Quantities, SizesReadAsPeopleWriteThem) {
  const std::pair<const char*, uint64_t> good[] = {
      {"65536", 65536},      {"64K", 65536},       {"1.5G", 3ull << 29}, {"2GiB", 2ull << 30},
      {"2 gib", 2ull << 30}, {"800MB", 800000000}, {"1t", 1ull << 40},   {"12B", 12},
  };
  for (const auto& [text, bytes] : good) {
    auto parsed = parse_bytes("size", text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
  for (const char* bad : {"", "G", "-1G", "1.2.3G", "1X", "0", "99999999T", "1G2"}) {
    EXPECT_FALSE(parse_bytes("size", bad)) << bad;
  }
}

TEST(Quantities, AmountsAreShownShort) {
  EXPECT_EQ(show_bytes(12), "12 bytes");
  EXPECT_EQ(show_bytes(1536), "1.5 KiB");
  EXPECT_EQ(show_bytes(300ull << 20), "300 MiB");
  EXPECT_EQ(show_bytes(1000ull << 20), "1.0 GiB");
  EXPECT_EQ(show_seconds(0.347), "0.35 s");
  EXPECT_EQ(show_seconds(42), "42 s");
  EXPECT_EQ(show_seconds(185), "3:05 min");
}

}  // namespace
}  // namespace cairn::quantities_test
