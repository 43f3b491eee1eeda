// RmsNorm and LayerNorm: vector kernels against the reference bit for bit, the reference against
// float64, and the order of its sum.
#include "backends/cpu/ops.h"
#include "backends/reference/partial_sums.h"
#include "tests/backends/same_bits.h"

namespace cairn::test::norm_test {
namespace {

op::RmsNorm make_norm(World& world, int32_t group, int32_t group_count, int32_t gains, RowSet set) {
  const Rows x = world.rows(group * group_count, set, 3.0f);
  const Rows out = world.rows(group * group_count, set);
  const int32_t gain_count = gains == 2 ? group * group_count : group;
  return {.x = x,
          .out = out,
          .gain = gains == 0 ? Constant{} : world.parameters(size_t(gain_count)),
          .group = group,
          .gain_per_element = gains == 2,
          .epsilon = 1e-5f};
}

constexpr int32_t kGroups[] = {1, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 64, 100, 576, 2048};

TEST(RmsNorm, EveryLevelHasTheReferencesBits) {
  uint32_t seed = 0;
  for (const int32_t group : kGroups) {
    for (const int32_t gains : {0, 1, 2}) {
      expect_same_bits(seed++, {{.row_count = 11}}, [&](World& world) -> Op {
        return make_norm(world, group, gains == 0 ? 1 : 3, gains,
                         gains == 1 ? RowSet::outputs : RowSet::tokens);
      });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(RmsNorm, ReferenceIsTheFormula) {
  World world(1, {{.row_count = 4}});
  const op::RmsNorm norm = make_norm(world, 100, 2, 2, RowSet::tokens);
  const Step step = world.step();
  run_op(reference::kernel_for(norm), norm, step);
  for (int32_t row = 0; row < 4; ++row) {
    for (int32_t i = 0; i < 200; ++i) {
      double squares = 0;
      const float* x = step.row(norm.x, row);
      for (int32_t j = i / 100 * 100; j < i / 100 * 100 + 100; ++j) {
        squares += double(x[j]) * double(x[j]);
      }
      const double expected =
          double(x[i]) / std::sqrt(squares / 100 + double(norm.epsilon)) * double(norm.gain[i]);
      EXPECT_LT(relative_error(expected, double(step.row(norm.out, row)[i])), 1e-6);
    }
  }
}

op::LayerNorm make_layer_norm(World& world, int32_t group, int32_t group_count, int32_t gains) {
  const Rows x = world.rows(group * group_count, RowSet::tokens, 3.0f);
  const Rows out = world.rows(group * group_count);
  const bool per_element = gains >= 2;
  const size_t gain_count = size_t(per_element ? group * group_count : group);
  return {.x = x,
          .out = out,
          .gain = gains == 0 ? Constant{} : world.parameters(gain_count),
          .bias = gains == 3 || gains == 1 ? world.parameters(gain_count) : Constant{},
          .group = group,
          .gain_per_element = per_element,
          .epsilon = 1e-5f};
}

TEST(LayerNorm, EveryLevelHasTheReferencesBits) {
  uint32_t seed = 1000;
  for (const int32_t group : kGroups) {
    for (const int32_t gains : {0, 1, 2, 3}) {
      expect_same_bits(seed++, {{.row_count = 11}}, [&](World& world) -> Op {
        return make_layer_norm(world, group, gains == 0 ? 1 : 3, gains);
      });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(LayerNorm, InPlaceGivesTheSameBits) {
  expect_same_bits(3, {{.row_count = 4}}, [&](World& world) -> Op {
    op::LayerNorm norm = make_layer_norm(world, 77, 2, 3);
    norm.out = norm.x;
    return norm;
  });
}

TEST(LayerNorm, ReferenceIsTheFormula) {
  for (const int32_t gains : {2, 3}) {
    World world(2, {{.row_count = 4}});
    const op::LayerNorm norm = make_layer_norm(world, 100, 2, gains);
    const Step step = world.step();
    run_op(reference::kernel_for(norm), norm, step);
    for (int32_t row = 0; row < 4; ++row) {
      const float* x = step.row(norm.x, row);
      for (int32_t i = 0; i < 200; ++i) {
        double mean = 0, squares = 0;
        const int32_t first = i / 100 * 100;
        for (int32_t j = first; j < first + 100; ++j) mean += double(x[j]) / 100;
        for (int32_t j = first; j < first + 100; ++j) {
          squares += (double(x[j]) - mean) * (double(x[j]) - mean);
        }
        double expected = (double(x[i]) - mean) / std::sqrt(squares / 100 + double(norm.epsilon));
        expected *= double(norm.gain[i]);
        if (norm.bias.exists()) expected += double(norm.bias[i]);
        EXPECT_NEAR(expected, double(step.row(norm.out, row)[i]), 1e-5);
      }
    }
  }
}

TEST(RmsNorm, SumsSixteenPartsAndThenATree) {
  // 2^24 swallows a 1 that is added to it, but not the sum of the other fifteen parts.
  std::vector<float> x(32, 1.0f);
  x[0] = 0x1p24f;
  // Part 0 is 2^24 + 1 = 2^24, the others 2; the tree adds 2^24 + 2, then 4, 8 and 16.
  EXPECT_EQ(0x1p24f + 30.0f, reference::sum(x));
  // In index order, each 1 would be lost.
  float in_order = 0;
  for (const float value : x) in_order += value;
  EXPECT_EQ(0x1p24f, in_order);
}

}  // namespace
}  // namespace cairn::test::norm_test
