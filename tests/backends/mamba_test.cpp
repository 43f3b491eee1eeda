// Mamba-1's scan: vector kernels against the reference bit for bit, the reference against float64,
// one step of many rows against many of one.
#include "backends/cpu/ops.h"
#include "tests/backends/same_bits.h"
#include "tests/sanitized.h"

namespace cairn::test::mamba_test {
namespace {

struct Shape {
  int32_t channels, state_size;
};

op::MambaScan make_scan(World& world, const Shape& shape) {
  const Rows x = world.rows(shape.channels);
  const Rows b = world.rows(shape.state_size);
  const Rows c = world.rows(shape.state_size);
  const Rows dt = world.rows(shape.channels, RowSet::tokens, 2.0f);
  const Rows out = world.rows(shape.channels);
  const size_t state_count = size_t(shape.channels) * size_t(shape.state_size);
  return {.x = x,
          .b = b,
          .c = c,
          .dt = dt,
          .out = out,
          .a = world.decays(state_count),
          .d = world.parameters(size_t(shape.channels)),
          .state_size = shape.state_size,
          .state = world.state(state_count)};
}

// One task and several; whole vectors and rests of either width.
constexpr Shape kShapes[] = {{1, 1}, {16, 16}, {33, 5}, {128, 16}, {300, 16}, {7, 4}, {50, 64}};

TEST(MambaScan, EveryLevelHasTheReferencesBits) {
  for (uint32_t seed = 0; seed < test::cases(21); ++seed) {
    const std::vector<SliceSpec> specs = {
        {.row_count = 1},
        {.row_count = 1, .has_state = false},
        {.row_count = 3, .has_state = seed % 2 == 0, .captures = {1, 2, 3}},
        {.row_count = 2 + int32_t(seed / 7)},
        {.row_count = 21, .has_state = seed % 3 == 0, .captures = {5, 20, 21}}};
    expect_same_bits(seed, specs,
                     [seed](World& world) -> Op { return make_scan(world, kShapes[seed % 7]); });
    if (HasFatalFailure()) return;
  }
}

TEST(MambaScan, ReferenceIsTheRecurrence) {
  const Shape shape{6, 5};
  World world(11, {{.row_count = 30}});
  const op::MambaScan scan = make_scan(world, shape);
  const Step step = world.step();
  const float* before = reinterpret_cast<const float*>(world.state_before(0));
  std::vector<double> state(before, before + 6 * 5);
  run_op(reference::kernel_for(scan), scan, step);
  double worst = 0;
  for (int32_t row = 0; row < 30; ++row) {
    for (int32_t channel = 0; channel < 6; ++channel) {
      const double dt = std::log1p(std::exp(double(step.row(scan.dt, row)[channel])));
      const double x = double(step.row(scan.x, row)[channel]);
      double y = double(scan.d[channel]) * x;
      for (int32_t n = 0; n < 5; ++n) {
        double& s = state[size_t(n * 6 + channel)];
        s = s * std::exp(dt * double(scan.a[channel * 5 + n])) +
            dt * x * double(step.row(scan.b, row)[n]);
        y += s * double(step.row(scan.c, row)[n]);
      }
      worst = std::max(worst, relative_error(y, double(step.row(scan.out, row)[channel])));
    }
  }
  EXPECT_LT(worst, 1e-5);
  const float* captured = reinterpret_cast<const float*>(world.captured(0, 0));
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_LT(relative_error(state[i], double(captured[i])), 1e-5);
  }
}

TEST(MambaScan, RowsTogetherEqualRowsAlone) {
  using Scan = op::MambaScan;
  expect_rows_alone_alike<Scan>({.row_count = 40, .has_state = false}, 150 * 16,
                                [](World& world) {
                                  return make_scan(world, {150, 16});
                                },
                                {&Scan::x, &Scan::b, &Scan::c, &Scan::dt, &Scan::out});
}

}  // namespace
}  // namespace cairn::test::mamba_test
