// The fits to code books: whatever scales they chose, no other entry and no other signs would be
// better; and scales that are there are found. Signs and eighths stay within what a file can hold.
#include "quant/grids/grid_fit.h"

#include <gtest/gtest.h>

#include <bit>

#include "quant/grids/grid.h"
#include "quant/search.h"
#include "tests/quant/data.h"

namespace cairn::quant::grid_fit_test {
namespace {

constexpr GridFormat kTwoBits{.grid = kGridIq2Xs,
                              .entry_count = 512,
                              .entry_weights = 8,
                              .levels = {8, 25, 43},
                              .signs = GridSigns::even,
                              .cell_weights = 8,
                              .group_count = 16,
                              .s_high = 15,
                              .stored_factor = 8};
constexpr GridFormat kThreeBits{.grid = kGridIq3Xxs,
                                .entry_count = 256,
                                .entry_weights = 4,
                                .levels = {4, 12, 20, 28, 36, 44, 52, 62},
                                .signs = GridSigns::even,
                                .cell_weights = 8,
                                .group_count = 8,
                                .s_high = 15,
                                .stored_factor = 4};
constexpr GridFormat kOneBit{.grid = kGridIq1,
                             .entry_count = 2048,
                             .entry_weights = 8,
                             .levels = {-8, 0, 8},
                             .signs = GridSigns::shifted,
                             .cell_weights = 32,
                             .group_count = 8,
                             .s_high = 7,
                             .stored_factor = 8};

float step_of(const GridFit& fit, const GridFormat& format, int weight) {
  const int group = weight / (256 / format.group_count);
  return fit.fitted_scale / format.stored_factor * float(2 * fit.s[group] + 1);
}

int level_of(const GridFormat& format, int entry, int place) {
  const int bits = format.entry_weights == 8 ? 2 : 3;
  return format.levels[format.grid[entry] >> (bits * place) & ((1 << bits) - 1)];
}

// What one run of weights would leave with any entry and signs.
double error_with(const GridFormat& format, const float* x, const float* w, float step, int entry,
                  uint32_t signs) {
  double error = 0;
  for (int i = 0; i < format.entry_weights; ++i) {
    const double level = level_of(format, entry, i) * ((signs >> i & 1) != 0 ? -1 : 1);
    const double difference = double(x[i]) - double(step) * level;
    error += double(w[i]) * difference * difference;
  }
  return error;
}

std::vector<float> importances() {
  std::vector<float> importance = gaussian(256, 0, 1, 8);
  for (float& v : importance) v = std::exp(v);
  return importance;
}

// What errors count by in the fit.
std::vector<float> factors_of(const std::vector<float>& x, const std::vector<float>& importance,
                              Emphasis emphasis) {
  Prepared block;
  prepare(x.data(), importance.data(), 256, block);
  emphasize(block, 256, emphasis);
  return std::vector<float>(block.w, block.w + 256);
}

// Every entry and every choice of signs for 8 weights: 512 times 128 ways.
TEST(GridFit, EntriesAndSignsAreTheBest) {
  const std::vector<float> importance = importances();
  for (uint32_t seed = 0; seed < 3; ++seed) {
    const std::vector<float> x = gaussian(256, 0, 1, seed);
    GridFit fit;
    fit_grid(x.data(), importance.data(), kTwoBits, fit);
    const std::vector<float> factors = factors_of(x, importance, Emphasis::mild);
    for (int run = 0; run < 32; run += 5) {
      const float step = step_of(fit, kTwoBits, 8 * run);
      const auto error = [&](int entry, uint32_t signs) {
        return error_with(kTwoBits, &x[size_t(8 * run)], &factors[size_t(8 * run)], step, entry,
                          signs);
      };
      EXPECT_EQ(std::popcount(fit.signs[run]) % 2, 0);
      const double found = error(fit.index[run], fit.signs[run]);
      for (int entry = 0; entry < kTwoBits.entry_count; ++entry) {
        for (uint32_t signs = 0; signs < 128; ++signs) {
          ASSERT_GE(error(entry, even_signs(signs)), found * 0.9999) << run;
        }
      }
    }
  }
}

// Two runs of four share their signs' number: 256 entries and 16 signs for each.
TEST(GridFit, RunsThatShareSignsAreTheBestTogether) {
  const std::vector<float> importance = importances();
  const std::vector<float> x = gaussian(256, 0, 1, 4);
  GridFit fit;
  fit_grid(x.data(), importance.data(), kThreeBits, fit);
  const std::vector<float> factors = factors_of(x, importance, Emphasis::mild);
  for (int cell = 0; cell < 32; ++cell) {
    const float step = step_of(fit, kThreeBits, 8 * cell);
    double best[2][2] = {{INFINITY, INFINITY}, {INFINITY, INFINITY}};  // [run, odd number of signs]
    double found = 0;
    for (int run = 0; run < 2; ++run) {
      const size_t at = size_t(8 * cell + 4 * run);
      const auto error = [&](int entry, uint32_t signs) {
        return error_with(kThreeBits, &x[at], &factors[at], step, entry, signs);
      };
      found += error(fit.index[2 * cell + run], fit.signs[cell] >> (4 * run) & 15);
      for (int entry = 0; entry < kThreeBits.entry_count; ++entry) {
        for (uint32_t signs = 0; signs < 16; ++signs) {
          double& one = best[run][std::popcount(signs) % 2];
          one = std::min(one, error(entry, signs));
        }
      }
    }
    EXPECT_EQ(std::popcount(fit.signs[cell]) % 2, 0);
    const double least = std::min(best[0][0] + best[1][0], best[0][1] + best[1][1]);
    EXPECT_NEAR(found, least, 1e-4 * least) << cell;
  }
}

TEST(GridFit, FindsWhatIsThere) {
  std::vector<float> x(256);
  for (int i = 0; i < 256; ++i) {
    const int entry = (i / 8 * 97) % 2048;
    const int shift = i / 32 % 3 == 0 ? -1 : 1;
    x[size_t(i)] = 0.01f * float(2 * (i / 32) + 1) * float(level_of(kOneBit, entry, i % 8) + shift);
  }
  GridFit fit;
  fit_grid(x.data(), nullptr, kOneBit, fit);
  for (int i = 0; i < 256; ++i) {
    const int level = level_of(kOneBit, fit.index[i / 8], i % 8) + (fit.is_low[i / 8] ? -1 : 1);
    EXPECT_NEAR(step_of(fit, kOneBit, i) * float(level), x[size_t(i)], 2e-3 * 0.15 * 9) << i;
  }
}

TEST(GridFit, ZerosHaveNoScale) {
  const std::vector<float> zeros(256, 0.0f);
  for (const GridFormat* format : {&kOneBit, &kTwoBits, &kThreeBits}) {
    GridFit fit;
    fit_grid(zeros.data(), nullptr, *format, fit);
    EXPECT_EQ(uint32_t(fit.scale), 0u);
  }
}

}  // namespace
}  // namespace cairn::quant::grid_fit_test
