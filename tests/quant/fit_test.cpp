// Super-blocks: integers within their limits, and structure that is there is found.
#include "quant/fit.h"

#include <gtest/gtest.h>

#include "tests/quant/data.h"

namespace cairn::quant::fit_test {
namespace {

TEST(FitScaled, IntegersStayInRange) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Prepared block;
    prepare(gaussian(256, 0.1f, 1, seed).data(), nullptr, 256, block);
    ScaledFit fit;
    fit_scaled(block, {.group_count = 16, .q_range = {-4, 3}, .s_range = {-32, 31}}, fit);
    for (const int8_t s : fit.s) EXPECT_TRUE(s >= -32 && s <= 31);
    for (const int8_t q : fit.q) EXPECT_TRUE(q >= -4 && q <= 3);
  }
}

TEST(FitScaled, FindsGroupScalesThatAreThere) {
  std::vector<float> weights(256);
  for (size_t i = 0; i < 256; ++i) {
    weights[i] = 0.001f * float(128 - i / 16 * 8) * float(int(i * 13 % 64) - 32);
    if (i % 16 == 0) weights[i] = -32 * 0.001f * float(128 - i / 16 * 8);
  }
  Prepared block;
  prepare(weights.data(), nullptr, 256, block);
  ScaledFit fit;
  fit_scaled(block, {.group_count = 16, .q_range = {-32, 31}, .s_range = {-128, 127}}, fit);
  for (size_t i = 0; i < 256; ++i) {
    const float restored = to_float(fit.scale) * float(fit.s[i / 16]) * float(fit.q[i]);
    EXPECT_NEAR(restored, weights[i], std::abs(weights[i]) * 1e-3f) << i;
  }
}

TEST(FitOffset, IntegersStayInRange) {
  const OffsetFormat format{.group_count = 16, .q_high = 3, .level_high = 15};
  for (const float mean : {-5.0f, 0.0f, 5.0f}) {
    Prepared block;
    prepare(gaussian(256, mean, 1, 1).data(), nullptr, 256, block);
    OffsetFit fit;
    fit_offset(block, format, fit);
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(fit.s[i] <= 15 && fit.m[i] <= 15);
    for (const int8_t q : fit.q) EXPECT_TRUE(q >= 0 && q <= 3);
  }
}

TEST(FitOffset, ConstantNegativeBlocksAreTheirMinimum) {
  Prepared block;
  prepare(std::vector<float>(256, -0.5f).data(), nullptr, 256, block);
  OffsetFit fit;
  fit_offset(block, {.group_count = 8, .q_high = 15, .level_high = 63}, fit);
  for (int group = 0; group < 8; ++group) {
    const float line = to_float(fit.scale) * float(fit.s[group]) * float(fit.q[32 * group]) -
                       to_float(fit.min) * float(fit.m[group]);
    EXPECT_NEAR(line, -0.5f, 1e-3f);
  }
}

TEST(FitTernary, TakesTheBestCut) {
  const std::vector<float> weights = gaussian(256, 0, 1, 4);
  const std::vector<float> importance(256, 1.0f);
  Prepared block;
  prepare(weights.data(), importance.data(), 256, block);
  const Group group{block.x, block.w, 256};
  Half scale;
  int8_t q[256];
  fit_ternary(block, scale, q);
  const float found = error_of(group, to_float(scale) / block.unit, {-1, 1});
  for (float trial = 0.01f; trial < 1; trial += 0.01f) {
    EXPECT_LE(found, error_of(group, trial, {-1, 1}) * 1.001f) << trial;
  }
}

TEST(FitScale, IsNeverWorseThanThePeak) {
  constexpr Range kRange{-8, 7};
  for (const float deviation : {1.0f, 1e-6f, 3e-8f}) {
    for (uint32_t seed = 0; seed < 30; ++seed) {
      Prepared block;
      prepare(gaussian(32, 0, deviation, seed).data(), nullptr, 32, block);
      const Group group{block.x, block.w, 32};
      Half stored;
      const float scale = fit_scale(block, kRange, 8, stored);
      EXPECT_EQ(scale, to_float(stored) / block.unit);
      const float peak = to_float(stored_scale(peak_of(group) / -8, block.unit)) / block.unit;
      EXPECT_LE(error_of(group, scale, kRange), error_of(group, peak, kRange));
    }
  }
}

TEST(FitLine, HoldsWhereTheMinimumIsCoarse) {
  // Around 1000 the f16 minimum has steps of 0.5; the weights spread over 0.2.
  const std::vector<float> weights = gaussian(32, 1000.2f, 0.05f, 3);
  Prepared block;
  prepare(weights.data(), nullptr, 32, block);
  LineBlock fit;
  fit_line(block, 15, fit);
  for (size_t i = 0; i < 32; ++i) {
    const float restored = to_float(fit.scale) * float(fit.q[i]) + to_float(fit.min);
    EXPECT_NEAR(restored, weights[i], 0.03);
  }
}

}  // namespace
}  // namespace cairn::quant::fit_test
