// Add, Scale, Clamp, Activate, Gate and ExpertSum: vector kernels against the reference bit for
// bit, the reference against float64.
#include <limits>

#include "backends/cpu/ops.h"
#include "tests/backends/same_bits.h"
#include "tests/sanitized.h"

namespace cairn::test::elementwise_test {
namespace {

constexpr int32_t kWidths[] = {1, 7, 8, 15, 16, 17, 33, 200, test::kIsSlow ? 1100 : 5000};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Elementwise, EveryLevelHasTheReferencesBits) {
  uint32_t seed = 0;
  for (const int32_t width : kWidths) {
    const std::vector<SliceSpec> specs = {{.row_count = 1 + int32_t(seed % 20)}};
    expect_same_bits(++seed, specs, [&](World& world) -> Op {
      const Rows a = world.rows(width), b = world.rows(width), out = world.rows(width);
      return op::Add{.a = a, .b = b, .out = out, .scale = 0.37f};
    });
    expect_same_bits(++seed, specs, [&](World& world) -> Op {
      const Rows x = world.rows(width, RowSet::outputs);
      return op::Scale{.x = x, .out = x, .factor = 1.7f};
    });
    expect_same_bits(++seed, specs, [&](World& world) -> Op {
      const Constant factors = world.parameters(size_t(width));
      const Rows x = world.rows(width), out = world.rows(width);
      return op::Scale{.x = x, .out = out, .factor = 0.3f, .of_columns = factors};
    });
    for (int32_t k : {1, 2, 8}) {
      expect_same_bits(++seed, specs, [&](World& world) -> Op {
        const Rows x = world.rows(width * k), weights = world.rows(k), out = world.rows(width);
        return op::ExpertSum{.x = x, .weights = weights, .out = out};
      });
      expect_same_bits(++seed, specs, [&](World& world) -> Op {
        const Rows x = world.rows(width), weights = world.rows(k), out = world.rows(width * k);
        return op::ExpertScale{.x = x, .weights = weights, .out = out};
      });
    }
    if (HasFatalFailure()) return;
  }
}

// Gates in the middle, in the tails, and what is no number.
op::Gate make_gate(World& world, Activation activation, int32_t width) {
  const Rows gate = world.rows(width, RowSet::tokens, 6.0f);
  const Rows x = world.rows(width), out = world.rows(width);
  const Step step = world.step();
  constexpr float kSpecial[] = {0.0f, -0.0f, kInfinity, -kInfinity, 100.0f, -100.0f, 1e-40f};
  for (int32_t i = 0; i < std::min(width, 7); ++i) step.row(gate, 0)[i] = kSpecial[i];
  if (width > 7) step.row(gate, 0)[7] = std::nanf("");
  return {.gate = gate, .x = x, .out = out, .activation = activation};
}

constexpr Activation kActivations[] = {
    Activation::silu,     Activation::gelu_erf,       Activation::gelu_tanh,
    Activation::relu,     Activation::sigmoid,        Activation::tanh,
    Activation::softplus, Activation::clamped_swiglu, Activation::none};

TEST(Gate, EveryLevelHasTheReferencesBits) {
  uint32_t seed = 100;
  for (const Activation activation : kActivations) {
    for (const int32_t width : kWidths) {
      expect_same_bits(++seed, {{.row_count = 5}},
                       [&](World& world) -> Op { return make_gate(world, activation, width); });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Activate, EveryLevelHasTheReferencesBits) {
  uint32_t seed = 200;
  for (const Activation activation : kActivations) {
    for (const int32_t width : kWidths) {
      expect_same_bits(++seed, {{.row_count = 5}}, [&](World& world) -> Op {
        const op::Gate gate = make_gate(world, activation, width);
        return op::Activate{.x = gate.gate, .out = gate.out, .activation = activation};
      });
      if (HasFatalFailure()) return;
    }
  }
}

// Sides that lie in runs, one of each in turn, against the same sides apart.
TEST(Gate, RunsAreTheTwoSidesInTurn) {
  for (const int32_t run : {1, 7, 16, 40}) {
    const int32_t width = 3 * run;
    World world(uint32_t(300 + run), {{.row_count = 2}});
    op::Gate apart = make_gate(world, Activation::gelu_tanh, width);
    const Rows both = world.rows(2 * width);
    const auto side = [&](int32_t first) {
      return Rows{.offset = both.offset + first, .stride = both.stride, .width = 2 * width - run};
    };
    const op::Gate runs{.gate = side(0),
                        .x = side(run),
                        .out = world.rows(width),
                        .activation = Activation::gelu_tanh,
                        .run = run};
    const Step step = world.step();
    for (int32_t row = 0; row < 2; ++row) {
      for (int32_t i = 0; i < width; ++i) {
        const int32_t at = i / run * 2 * run + i % run;
        step.row(both, row)[at] = step.row(apart.gate, row)[i];
        step.row(both, row)[at + run] = step.row(apart.x, row)[i];
      }
    }
    run_op(reference::kernel_for(apart), apart, step);
    run_op(reference::kernel_for(runs), runs, step);
    for (int32_t row = 0; row < 2; ++row) {
      EXPECT_EQ(0, std::memcmp(step.row(apart.out, row), step.row(runs.out, row),
                               size_t(width) * sizeof(float)));
    }
    expect_same_bits(uint32_t(run), {{.row_count = 5}}, [&](World& other) -> Op {
      const Rows pair = other.rows(2 * width);
      Rows gate = pair, x = pair;
      gate.width = x.width = 2 * width - run;
      x.offset += run;
      return op::Gate{.gate = gate,
                      .x = x,
                      .out = other.rows(width),
                      .activation = Activation::gelu_tanh,
                      .run = run};
    });
  }
}

double plain(Activation activation, double x) {
  switch (activation) {
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu_erf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::softplus:
      return std::log1p(std::exp(x));
    case Activation::clamped_swiglu:
      return std::min(x, 7.0) / (1 + std::exp(-1.702 * std::min(x, 7.0)));
    case Activation::none:
      return x;
  }
  return 0;
}

// What the activation is multiplied by.
double plain_other(Activation activation, double x) {
  return activation == Activation::clamped_swiglu ? std::clamp(x, -7.0, 7.0) + 1 : x;
}

TEST(Gate, ReferenceIsTheFormula) {
  for (const Activation activation : kActivations) {
    World world(7, {{.row_count = 3}});
    const Rows gate = world.rows(500, RowSet::tokens, 4.0f);
    const Rows x = world.rows(500, RowSet::tokens, 4.0f);
    const op::Gate op{.gate = gate, .x = x, .out = world.rows(500), .activation = activation};
    const Step step = world.step();
    run_op(reference::kernel_for(op), op, step);
    for (int32_t i = 0; i < 1500; ++i) {
      const double expected = plain(activation, double(step.row(gate, i / 500)[i % 500])) *
                              plain_other(activation, double(step.row(x, i / 500)[i % 500]));
      EXPECT_LT(relative_error(expected, double(step.row(op.out, i / 500)[i % 500])), 1e-6);
    }
  }
}

// An activation alone is a gate on ones (on zeros where the gate adds one).
TEST(Activate, ReferenceIsTheGateOfOnes) {
  for (const Activation activation : kActivations) {
    World world(9, {{.row_count = 3}});
    const op::Gate gate = make_gate(world, activation, 100);
    const op::Activate op{.x = gate.gate, .out = world.rows(100), .activation = activation};
    const Step step = world.step();
    const float neutral = activation == Activation::clamped_swiglu ? 0.0f : 1.0f;
    for (int32_t row = 0; row < 3; ++row) std::fill_n(step.row(gate.x, row), 100, neutral);
    run_op(reference::kernel_for(gate), gate, step);
    run_op(reference::kernel_for(op), op, step);
    for (int32_t row = 0; row < 3; ++row) {
      EXPECT_EQ(std::memcmp(step.row(gate.out, row), step.row(op.out, row), 400), 0);
    }
  }
}

TEST(Clamp, KeepsWithinTheLimitAndWhatIsNoNumber) {
  World world(9, {{.row_count = 1}});
  const Rows x = world.rows(6), out = world.rows(6);
  const Step step = world.step();
  const float values[] = {-kInfinity, -2.5f, 1.25f, -0.0f, 2.6f, std::nanf("")};
  const float expected[] = {-2.5f, -2.5f, 1.25f, -0.0f, 2.5f};
  std::copy_n(values, 6, step.row(x, 0));
  const op::Clamp clamp{.x = x, .out = out, .limit = 2.5f};
  run_op(reference::kernel_for(clamp), clamp, step);
  EXPECT_EQ(std::memcmp(step.row(out, 0), expected, sizeof expected), 0);
  EXPECT_TRUE(std::isnan(step.row(out, 0)[5]));
}

TEST(Elementwise, ReferenceIsTheFormula) {
  World world(8, {{.row_count = 2}});
  const Rows x = world.rows(30), weights = world.rows(3), sum = world.rows(10);
  const Rows a = world.rows(10), total = world.rows(10), scaled = world.rows(10);
  const Rows spread = world.rows(30);
  const Step step = world.step();
  const Op ops[] = {op::ExpertSum{.x = x, .weights = weights, .out = sum},
                    op::ExpertScale{.x = a, .weights = weights, .out = spread},
                    op::Add{.a = a, .b = sum, .out = total, .scale = 0.5f},
                    op::Scale{.x = total, .out = scaled, .factor = -3.0f}};
  for (const Op& op : ops) run_op(reference::kernel_for(op), op, step);
  for (int32_t row = 0; row < 2; ++row) {
    for (int32_t i = 0; i < 10; ++i) {
      double expected = 0;
      for (int32_t rank = 0; rank < 3; ++rank) {
        expected += double(step.row(weights, row)[rank]) * double(step.row(x, row)[rank * 10 + i]);
      }
      expected = (double(step.row(a, row)[i]) + 0.5 * expected) * -3.0;
      EXPECT_LT(relative_error(expected, double(step.row(scaled, row)[i])), 1e-6);
      for (int32_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(step.row(a, row)[i] * step.row(weights, row)[rank],
                  step.row(spread, row)[rank * 10 + i]);
      }
    }
  }
}

}  // namespace
}  // namespace cairn::test::elementwise_test
