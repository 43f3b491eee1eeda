// The short convolution: vector kernels against the reference bit for bit, the reference against a
// plain sum, one step of many rows against many of one, and captures against the inputs.
#include "backends/cpu/ops.h"
#include "tests/backends/same_bits.h"
#include "tests/sanitized.h"

namespace cairn::test::conv_test {
namespace {

op::ShortConv make_conv(World& world, int32_t channels, int32_t kernel, bool bias, bool silu) {
  const Rows x = world.rows(channels);
  const Rows out = world.rows(channels);
  return {.x = x,
          .out = out,
          .weight = world.parameters(size_t(channels) * size_t(kernel)),
          .bias = bias ? world.parameters(size_t(channels)) : Constant{},
          .kernel = kernel,
          .silu = silu,
          .state = world.state(size_t(channels) * size_t(kernel - 1))};
}

constexpr int32_t kChannels[] = {1, 7, 8, 16, 33, 100};
constexpr int32_t kKernels[] = {2, 3, 4, 5};

TEST(ShortConv, EveryLevelHasTheReferencesBits) {
  for (uint32_t seed = 0; seed < test::cases(24); ++seed) {
    const std::vector<SliceSpec> specs = {
        {.row_count = 1},
        {.row_count = 2 + int32_t(seed % 3), .has_state = seed % 2 == 0},
        {.row_count = 40, .captures = {1, 2, 16, 17, 40}}};
    expect_same_bits(seed, specs, [seed](World& world) -> Op {
      return make_conv(world, kChannels[seed % 6], kKernels[seed / 6 % 4], seed % 3 == 0,
                       seed % 5 < 3);
    });
    if (HasFatalFailure()) return;
  }
}

TEST(ShortConv, ReferenceIsAConvolution) {
  World world(5, {{.row_count = 9}});
  const op::ShortConv conv = make_conv(world, 6, 4, true, true);
  const Step step = world.step();
  const float* tail = reinterpret_cast<const float*>(world.state_before(0));
  run_op(reference::kernel_for(conv), conv, step);
  for (int32_t row = 0; row < 9; ++row) {
    for (int32_t channel = 0; channel < 6; ++channel) {
      double total = double(conv.bias[channel]);
      for (int32_t tap = 0; tap < 4; ++tap) {
        const int32_t from = row - 3 + tap;
        const float x =
            from >= 0 ? step.row(conv.x, from)[channel] : tail[(3 + from) * 6 + channel];
        total += double(conv.weight[channel * 4 + tap]) * double(x);
      }
      EXPECT_LT(
          relative_error(total / (1 + std::exp(-total)), double(step.row(conv.out, row)[channel])),
          1e-5);
    }
  }
  const float* captured = reinterpret_cast<const float*>(world.captured(0, 0));
  for (int32_t entry = 0; entry < 3; ++entry) {
    EXPECT_EQ(0, std::memcmp(captured + entry * 6, step.row(conv.x, 6 + entry), 6 * 4));
  }
}

TEST(ShortConv, RowsTogetherEqualRowsAlone) {
  using Conv = op::ShortConv;
  expect_rows_alone_alike<Conv>({.row_count = 21}, 19 * 3,
                                [](World& world) { return make_conv(world, 19, 4, true, true); },
                                {&Conv::x, &Conv::out});
}

}  // namespace
}  // namespace cairn::test::conv_test
