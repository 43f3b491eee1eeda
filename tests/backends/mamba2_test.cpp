// Mamba-2's scan: vector kernels against the reference bit for bit, the reference against float64,
// one step of many rows against many of one.
#include "backends/cpu/ops.h"
#include "tests/backends/same_bits.h"
#include "tests/sanitized.h"

namespace cairn::test::mamba2_test {
namespace {

struct Shape {
  int32_t head_count, head_dim, state_size, group_count;
};

op::Mamba2Scan make_scan(World& world, const Shape& shape) {
  const int32_t inner = shape.head_count * shape.head_dim;
  const Rows x = world.rows(inner);
  const Rows b = world.rows(shape.group_count * shape.state_size);
  const Rows c = world.rows(shape.group_count * shape.state_size);
  const Rows dt = world.rows(shape.head_count, RowSet::tokens, 2.0f);
  const Rows out = world.rows(inner);
  return {.x = x,
          .b = b,
          .c = c,
          .dt = dt,
          .out = out,
          .a = world.decays(size_t(shape.head_count)),
          .d = world.parameters(size_t(shape.head_count)),
          .dt_bias = world.parameters(size_t(shape.head_count)),
          .head_count = shape.head_count,
          .head_dim = shape.head_dim,
          .state_size = shape.state_size,
          .group_count = shape.group_count,
          .state = world.state(size_t(inner) * size_t(shape.state_size))};
}

constexpr Shape kShapes[] = {{1, 1, 1, 1},   {2, 8, 16, 1},   {3, 16, 5, 3},   {4, 64, 32, 2},
                             {2, 33, 16, 1}, {6, 20, 128, 2}, {1, 128, 16, 1}, {24, 64, 16, 1}};

TEST(Mamba2Scan, EveryLevelHasTheReferencesBits) {
  for (uint32_t seed = 0; seed < test::cases(24); ++seed) {
    const std::vector<SliceSpec> specs = {
        {.row_count = 1},
        {.row_count = 3, .has_state = seed % 2 == 0, .captures = {1, 2, 3}},
        {.row_count = 2 + int32_t(seed / 8 % 3)},
        {.row_count = 4 + int32_t(seed % 5), .has_state = seed % 3 == 0},
        {.row_count = 71, .captures = {5, 64, 66, 71}}};
    expect_same_bits(seed, specs,
                     [seed](World& world) -> Op { return make_scan(world, kShapes[seed % 8]); });
    if (HasFatalFailure()) return;
  }
}

TEST(Mamba2Scan, ReferenceIsTheRecurrence) {
  const Shape shape{4, 6, 5, 2};
  World world(11, {{.row_count = 30}});
  const op::Mamba2Scan scan = make_scan(world, shape);
  const Step step = world.step();
  const float* before = reinterpret_cast<const float*>(world.state_before(0));
  std::vector<double> state(before, before + 4 * 6 * 5);
  run_op(reference::kernel_for(scan), scan, step);
  double worst = 0;
  for (int32_t row = 0; row < 30; ++row) {
    for (int32_t head = 0; head < 4; ++head) {
      const double raw = double(step.row(scan.dt, row)[head]) + double(scan.dt_bias[head]);
      const double dt = std::log1p(std::exp(raw));
      for (int32_t p = 0; p < 6; ++p) {
        const double x = double(step.row(scan.x, row)[head * 6 + p]);
        double y = double(scan.d[head]) * x;
        for (int32_t n = 0; n < 5; ++n) {
          double& s = state[size_t((head * 5 + n) * 6 + p)];
          s = s * std::exp(dt * double(scan.a[head])) +
              dt * x * double(step.row(scan.b, row)[head / 2 * 5 + n]);
          y += s * double(step.row(scan.c, row)[head / 2 * 5 + n]);
        }
        worst = std::max(worst, relative_error(y, double(step.row(scan.out, row)[head * 6 + p])));
      }
    }
  }
  EXPECT_LT(worst, 1e-5);
}

TEST(Mamba2Scan, RowsTogetherEqualRowsAlone) {
  using Scan = op::Mamba2Scan;
  expect_rows_alone_alike<Scan>({.row_count = 70, .has_state = false}, 3 * 40 * 16,
                                [](World& world) {
                                  return make_scan(world, {3, 40, 16, 1});
                                },
                                {&Scan::x, &Scan::b, &Scan::c, &Scan::dt, &Scan::out});
}

}  // namespace
}  // namespace cairn::test::mamba2_test
