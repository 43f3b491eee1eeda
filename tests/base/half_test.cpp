// All 65536 patterns of both formats widen and come back; narrowing rounds to nearest, ties to
// even.
#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace cairn::half_test {
namespace {

// What the bits of an f16 mean, by its definition.
double value_of(uint32_t bits) {
  const int exponent = int(bits >> 10 & 31);
  const double fraction = double(bits & 1023);
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryPatternWidensExactlyAndComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const Half half = Half(bits);
    const float wide = to_float(half);
    if (std::isnan(value_of(bits))) {
      EXPECT_TRUE(std::isnan(wide));
      EXPECT_TRUE(std::isnan(to_float(to_half(wide))));
      continue;
    }
    ASSERT_EQ(double(wide), value_of(bits)) << bits;
    ASSERT_EQ(std::signbit(wide), bits >> 15 != 0) << bits;
    ASSERT_EQ(uint32_t(to_half(wide)), bits);
  }
}

// Around every boundary between two neighbours: below, at and above the middle.
TEST(Half, RoundsToNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float middle = float((value_of(bits) + value_of(bits + 1)) / 2);  // Exact in f32.
    const uint32_t even = bits + (bits & 1);
    ASSERT_EQ(uint32_t(to_half(middle)), even) << bits;
    ASSERT_EQ(uint32_t(to_half(std::nextafter(middle, 0.0f))), bits) << bits;
    ASSERT_EQ(uint32_t(to_half(std::nextafter(middle, 1e9f))), bits + 1) << bits;
    ASSERT_EQ(uint32_t(to_half(-middle)), even | 0x8000u) << bits;
  }
  EXPECT_EQ(uint32_t(to_half(65519.996f)), 0x7bffu);
  EXPECT_EQ(uint32_t(to_half(65520.0f)), 0x7c00u);
  EXPECT_EQ(uint32_t(to_half(HUGE_VALF)), 0x7c00u);
  EXPECT_EQ(uint32_t(to_half(-1e30f)), 0xfc00u);
  EXPECT_EQ(uint32_t(to_half(0x1p-26f)), 0u);
  EXPECT_EQ(uint32_t(to_half(-0.0f)), 0x8000u);
}

TEST(BFloat16, EveryPatternComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float wide = to_float(BFloat16(bits));
    ASSERT_EQ(std::bit_cast<uint32_t>(wide), bits << 16);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(to_float(to_bfloat16(wide))));
    } else {
      ASSERT_EQ(uint32_t(to_bfloat16(wide)), bits);
    }
  }
}

TEST(BFloat16, RoundsToNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const uint32_t middle = bits << 16 | 0x8000u;
    ASSERT_EQ(uint32_t(to_bfloat16(std::bit_cast<float>(middle))), bits + (bits & 1));
    ASSERT_EQ(uint32_t(to_bfloat16(std::bit_cast<float>(middle - 1))), bits);
    ASSERT_EQ(uint32_t(to_bfloat16(std::bit_cast<float>(middle + 1))), bits + 1);
  }
  // A NaN whose upper half alone would look like infinity stays a NaN.
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace cairn::half_test
