// The uneven levels: nearest means nearest, everywhere.
#include "quant/iq4_levels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace cairn::quant::iq4_levels_test {
namespace {

TEST(Iq4Levels, CodesNameTheNearestLevel) {
  alignas(16) float w[16];
  for (float& v : w) v = 1;
  for (int start = -1400; start < 1400; start += 16) {
    alignas(16) float x[16];
    for (int i = 0; i < 16; ++i) x[i] = 0.1f * float(start + i);
    int8_t codes[16];
    quantize_iq4({x, w, 16}, 1, codes);
    for (int i = 0; i < 16; ++i) {
      const float distance = std::abs(x[i] - float(kIq4Levels[codes[i]]));
      for (const int8_t level : kIq4Levels) EXPECT_LE(distance, std::abs(x[i] - float(level)));
    }
  }
}

TEST(Iq4Levels, TheSearchFindsAScaleThatIsThere) {
  alignas(16) float x[32], w[32];
  for (const float scale : {0.004f, -0.004f}) {
    for (int i = 0; i < 32; ++i) {
      x[i] = scale * float(kIq4Levels[i % 16]);
      w[i] = 1;
    }
    EXPECT_NEAR(search_iq4_scale({x, w, 32}), scale, 1e-8);
  }
}

TEST(Iq4Levels, NothingHasNoScale) {
  alignas(16) float x[16] = {}, w[16] = {};
  EXPECT_EQ(search_iq4_scale({x, w, 16}), 0);
}

}  // namespace
}  // namespace cairn::quant::iq4_levels_test
