// Rotary positions: vector kernels against the reference bit for bit, the reference against
// float64.
#include "backends/cpu/ops.h"
#include "backends/reference/position_scale.h"
#include "tests/backends/same_bits.h"

namespace cairn::test::rope_test {
namespace {

struct Shape {
  int32_t head_count, head_dim, pair_count;
};
constexpr Shape kShapes[] = {{1, 2, 1},   {3, 10, 5},  {2, 16, 8},  {4, 64, 32},
                             {2, 64, 16}, {5, 80, 40}, {2, 96, 24}, {3, 128, 64}};

op::Rope make_rope(World& world, const Shape& shape, RopeStyle style) {
  const Rows x = world.rows(shape.head_count * shape.head_dim);
  const Rows table = world.rows(2 * shape.pair_count);
  return {.x = x,
          .table = table,
          .head_dim = shape.head_dim,
          .pair_count = shape.pair_count,
          .style = style};
}

TEST(Rope, EveryLevelHasTheReferencesBits) {
  uint32_t seed = 0;
  for (const Shape& shape : kShapes) {
    for (const RopeStyle style : {RopeStyle::adjacent, RopeStyle::halves}) {
      expect_same_bits(++seed, {{.row_count = 9}},
                       [&](World& world) -> Op { return make_rope(world, shape, style); });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Rope, ReferenceTurnsPairsByTheAngle) {
  constexpr double kFrequencies[] = {1.0, 0.25, 1e-3};
  for (const RopeStyle style : {RopeStyle::adjacent, RopeStyle::halves}) {
    World world(3, {{.row_count = 5, .first_position = 100000}});
    const op::Rope rope = make_rope(world, {2, 8, 3}, style);
    const op::RopeTable table{
        .frequencies = kFrequencies, .pair_count = 3, .magnitude = 1.25, .out = rope.table};
    const Step step = world.step();
    std::vector<std::vector<float>> before;
    for (int32_t row = 0; row < 5; ++row) {
      before.emplace_back(step.row(rope.x, row), step.row(rope.x, row) + 16);
    }
    run_op(reference::kernel_for(table), table, step);
    run_op(reference::kernel_for(rope), rope, step);
    for (int32_t row = 0; row < 5; ++row) {
      const float* after = step.row(rope.x, row);
      for (size_t head = 0; head < 16; head += 8) {
        for (size_t pair = 0; pair < 3; ++pair) {
          const size_t first = head + (style == RopeStyle::halves ? pair : 2 * pair);
          const size_t second = first + (style == RopeStyle::halves ? 3 : 1);
          const double angle = (100000.0 + row) * kFrequencies[pair];
          const double c = std::cos(angle) * 1.25, s = std::sin(angle) * 1.25;
          const double x0 = double(before[size_t(row)][first]);
          const double x1 = double(before[size_t(row)][second]);
          EXPECT_LT(relative_error(x0 * c - x1 * s, double(after[first])), 1e-6);
          EXPECT_LT(relative_error(x0 * s + x1 * c, double(after[second])), 1e-6);
        }
        EXPECT_EQ(before[size_t(row)][head + 6], after[head + 6]);
        EXPECT_EQ(before[size_t(row)][head + 7], after[head + 7]);
      }
    }
  }
}

TEST(ScaleByPosition, EveryLevelHasTheReferencesBits) {
  expect_same_bits(1, {{.row_count = 3, .first_position = 8190}, {.row_count = 2}},
                   [&](World& world) -> Op {
                     return op::ScaleByPosition{
                         .x = world.rows(50), .factor = 0.1, .original_context = 8192, .offset = 1};
                   });
}

TEST(ScaleByPosition, IsTheRoundedLogarithm) {
  for (const int32_t position : {0, 1, 9, 10, 11, 99, 4096, 131072, 1 << 24, INT32_MAX}) {
    for (const int32_t context : {1, 3, 10, 8192}) {
      for (const double factor : {0.0, 0.1, 1.0, -0.3}) {
        for (const int32_t offset : {0, 1}) {
          const double whole = std::floor((double(position) + offset) / context);
          const double expected = 1 + factor * std::log(1 + whole);
          const op::ScaleByPosition op{
              .x = {}, .factor = factor, .original_context = context, .offset = offset};
          EXPECT_EQ(float(expected), reference::position_scale(op, position))
              << position << " " << context << " " << factor;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cairn::test::rope_test
