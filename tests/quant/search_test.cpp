// The search for scales: what it finds is at least as good as every scale of a fine scan.
#include "quant/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/quant/data.h"

namespace cairn::quant::search_test {
namespace {

TEST(Prepare, ScalesByAPowerOfTwoAndReplacesWhatIsNotFinite) {
  const float weights[4] = {3, -5, INFINITY, NAN};
  const float importance[4] = {2, 6, -1, NAN};
  Prepared out;
  prepare(weights, importance, 4, out);
  EXPECT_EQ(out.unit, 8);
  EXPECT_EQ(out.x[0], 3.0f / 8);
  EXPECT_EQ(out.x[1], -5.0f / 8);
  EXPECT_EQ(out.x[2], 0);
  EXPECT_EQ(out.x[3], 0);
  EXPECT_FLOAT_EQ(out.w[0], 1.000001f);  // Of a mean of 2.
  EXPECT_FLOAT_EQ(out.w[1], 3.000001f);
  EXPECT_FLOAT_EQ(out.w[2], 1e-6f);
  EXPECT_FLOAT_EQ(out.w[3], 1e-6f);
}

TEST(Prepare, SurvivesBothEndsOfF32) {
  Prepared out;
  const float largest = std::numeric_limits<float>::max();
  const float extremes[4] = {largest, -largest, 0, 1};
  prepare(extremes, nullptr, 4, out);
  EXPECT_LT(std::abs(out.x[0]), 4);
  EXPECT_EQ(out.x[0] * out.unit, largest);
  const float smallest[4] = {std::numeric_limits<float>::denorm_min(), 0, 0, 0};
  prepare(smallest, nullptr, 4, out);
  EXPECT_EQ(out.x[0] * out.unit, smallest[0]);
  EXPECT_EQ(out.w[3], 1);
}

TEST(StoredScale, RoundsToNearestButNeverShrinksSubnormals) {
  EXPECT_EQ(to_float(stored_scale(1.0f + 0x1p-12f, 1)), 1.0f);
  EXPECT_EQ(to_float(stored_scale(0.5f, 4)), 2.0f);
  EXPECT_EQ(to_float(stored_scale(1.2f * 0x1p-24f, 1)), 0x1p-23f);
  EXPECT_EQ(to_float(stored_scale(-1e-20f, 1)), -0x1p-24f);
  EXPECT_EQ(to_float(stored_scale(1e9f, 1)), 65504.0f);
  EXPECT_EQ(to_float(stored_min(-1e9f, 1)), -65504.0f);
  EXPECT_EQ(uint32_t(stored_scale(0, 1)), 0u);
}

TEST(SearchScale, IsNearAFineScan) {
  constexpr Range kRange{-8, 7};
  double found = 0, scanned = 0, weights_power = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> weights = gaussian(32, 0, 0.3f, seed);
    std::vector<float> importance = gaussian(32, 1, 0.2f, seed + 100);
    Prepared block;
    prepare(weights.data(), importance.data(), 32, block);
    const Group group{block.x, block.w, 32};
    found += double(error_of(group, search_scale(group, kRange, 8), kRange));
    float best = INFINITY;
    for (float scale = -0.3f; scale < 0.3f; scale += 0.0001f) {
      if (scale != 0) best = std::min(best, error_of(group, scale, kRange));
    }
    scanned += double(best);
    for (const float v : weights) weights_power += double(v) * double(v);
  }
  EXPECT_LT(found, scanned * 1.02);
  EXPECT_GT(weights_power, 0);
}

TEST(SearchScale, GroupsOfNothingHaveNone) {
  Prepared block{};
  EXPECT_EQ(search_scale({block.x, block.w, 16}, {-8, 7}, 8), 0);
  block.x[3] = 1e-38f;
  EXPECT_EQ(search_scale({block.x, block.w, 16}, {-8, 7}, 8), 0);
  int8_t q[16];
  quantize({block.x, block.w, 16}, 0.0f, Range{-8, 7}, q);
  for (const int8_t v : q) EXPECT_EQ(v, 0);
}

TEST(SearchLine, FindsALineThatIsThere) {
  Prepared block;
  std::vector<float> weights(32);
  for (size_t i = 0; i < 32; ++i) weights[i] = 0.125f * float(i * 7 % 16) - 0.75f;
  prepare(weights.data(), nullptr, 32, block);
  const Group group{block.x, block.w, 32};
  const Line line = search_line(group, 15, Minimum::not_positive);
  EXPECT_NEAR(line.scale * block.unit, 0.125f, 1e-6);
  EXPECT_NEAR(line.min * block.unit, -0.75f, 1e-6);
  EXPECT_LT(error_of(group, line, 15), 1e-10f);
}

TEST(SearchLine, KeepsTheMinimumNotPositive) {
  Prepared block;
  const std::vector<float> weights = gaussian(32, 3, 0.5f, 1);
  prepare(weights.data(), nullptr, 32, block);
  const Group group{block.x, block.w, 32};
  EXPECT_LE(search_line(group, 15, Minimum::not_positive).min, 0);
  EXPECT_GT(search_line(group, 15, Minimum::any).min, 0);
}

// Against the line from the lowest weight to the highest, in one round of least squares.
TEST(SearchLine, IsBetterThanTheExtremes) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Prepared block;
    const std::vector<float> weights = gaussian(32, 0, 1, seed);
    prepare(weights.data(), nullptr, 32, block);
    const Group group{block.x, block.w, 32};
    const auto [low, high] = std::minmax_element(block.x, block.x + 32);
    const Line extremes{(*high - *low) / 15, *low};
    EXPECT_LT(error_of(group, search_line(group, 15, Minimum::any), 15),
              error_of(group, extremes, 15));
  }
}

}  // namespace
}  // namespace cairn::quant::search_test
