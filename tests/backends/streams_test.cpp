// Residual streams side by side and the upper tail of a row: vector kernels against the reference
// bit for bit, the reference against float64.
#include "tests/backends/same_bits.h"

namespace cairn::test::streams_test {
namespace {

constexpr int32_t kWidths[] = {1, 7, 8, 15, 16, 17, 33, 200, 1031};

op::MixStreams make_mix(World& world, int32_t width, int32_t out_count, int32_t in_count) {
  const Rows a = world.rows(width * out_count), b = world.rows(width * in_count);
  return {.a = a,
          .out = world.rows(width * out_count),
          .b = b,
          .coefficients = world.rows(out_count * in_count),
          .width = width,
          .offset = 0.75f};
}

TEST(Streams, EveryLevelHasTheReferencesBits) {
  uint32_t seed = 0;
  for (const int32_t width : kWidths) {
    const std::vector<SliceSpec> specs = {{.row_count = 1 + int32_t(seed % 20)}};
    for (const int32_t in_count : {1, 4}) {
      expect_same_bits(++seed, specs,
                       [&](World& world) -> Op { return make_mix(world, width, 4, in_count); });
    }
    // The same to each stream, in place.
    expect_same_bits(++seed, specs, [&](World& world) -> Op {
      const Rows streams = world.rows(3 * width), b = world.rows(width);
      return op::MixStreams{
          .a = streams, .out = streams, .b = b, .coefficients = {}, .width = width, .offset = 1.0f};
    });
    expect_same_bits(++seed, specs, [&](World& world) -> Op {
      const Rows x = world.rows(width, RowSet::tokens, 3.0f), out = world.rows(width);
      return op::GaussianTopk{.x = x, .out = out, .deviations = 0.4f};
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Streams, MixIsTheFormula) {
  World world(50, {{.row_count = 3}});
  const op::MixStreams op = make_mix(world, 20, 4, 3);
  const Step step = world.step();
  run_op(reference::kernel_for(op), op, step);
  for (int32_t row = 0; row < 3; ++row) {
    for (int32_t i = 0; i < 80; ++i) {
      double expected = double(step.row(op.a, row)[i]);
      for (int32_t j = 0; j < 3; ++j) {
        const double coefficient = double(step.row(op.coefficients, row)[i / 20 * 3 + j]) + 0.75;
        expected += coefficient * double(step.row(op.b, row)[j * 20 + i % 20]);
      }
      EXPECT_NEAR(expected, double(step.row(op.out, row)[i]), 1e-5);
    }
  }
}

double root_mean_square(const float* x, int32_t count) {
  double sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += double(x[i]) * double(x[i]);
  return std::sqrt(sum / count);
}

TEST(Streams, MagnitudesMatchUnlessTheyAreTooSmall) {
  World world(51, {{.row_count = 2}});
  const Rows first = world.rows(100, RowSet::tokens, 5.0f), x = world.rows(200);
  const op::MatchMagnitude op{.first = first, .x = x, .out = world.rows(300), .floor = 1e-4f};
  const Step step = world.step();
  // Its mean square is a hundredth of the floor: it becomes a tenth as long as `first`.
  std::fill_n(step.row(x, 1) + 100, 100, 1e-3f);
  run_op(reference::kernel_for(op), op, step);
  for (int32_t row = 0; row < 2; ++row) {
    const float* out = step.row(op.out, row);
    const double wanted = root_mean_square(step.row(first, row), 100);
    EXPECT_EQ(0, std::memcmp(out, step.row(first, row), 100 * sizeof(float)));
    EXPECT_NEAR(root_mean_square(out + 100, 100) / wanted, 1.0, 1e-6);
    EXPECT_NEAR(root_mean_square(out + 200, 100) / wanted, row == 0 ? 1.0 : 0.1, 1e-6);
    EXPECT_GT(double(out[120]) * double(step.row(x, row)[20]), 0.0);  // The same direction.
  }
}

TEST(GaussianTopk, IsTheFormula) {
  World world(52, {{.row_count = 2}});
  const Rows x = world.rows(500, RowSet::tokens, 2.0f);
  const op::GaussianTopk op{.x = x, .out = world.rows(500), .deviations = 1.6f};
  const Step step = world.step();
  run_op(reference::kernel_for(op), op, step);
  for (int32_t row = 0; row < 2; ++row) {
    const float* values = step.row(x, row);
    double mean = 0, variance = 0;
    for (int32_t i = 0; i < 500; ++i) mean += double(values[i]) / 500;
    for (int32_t i = 0; i < 500; ++i) variance += std::pow(double(values[i]) - mean, 2) / 500;
    int32_t kept = 0;
    for (int32_t i = 0; i < 500; ++i) {
      const double expected = std::max(0.0, double(values[i]) - mean - 1.6 * std::sqrt(variance));
      EXPECT_NEAR(expected, double(step.row(op.out, row)[i]), 1e-5);
      if (expected > 0) ++kept;
    }
    // Of a normal distribution 5.5 % lie there.
    EXPECT_GT(kept, 10);
    EXPECT_LT(kept, 50);
  }
}

}  // namespace
}  // namespace cairn::test::streams_test
