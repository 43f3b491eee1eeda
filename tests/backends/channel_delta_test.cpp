// The delta rule with a decay for each channel: vector kernels against the reference bit for bit,
// the reference against float64 as both papers write it, one step of many rows against many of one.
#include "backends/cpu/ops.h"
#include "tests/backends/same_bits.h"
#include "tests/sanitized.h"

namespace cairn::test::channel_delta_test {
namespace {

using Scan = op::ChannelDeltaScan;

struct Shape {
  int32_t head_count, key_dim, value_dim;
  bool has_rate;
};

size_t state_floats(const Shape& shape) {
  return size_t(shape.head_count) * size_t(shape.key_dim) * size_t(shape.value_dim);
}

Scan make_scan(World& world, const Shape& shape) {
  const int32_t keys = shape.head_count * shape.key_dim;
  const int32_t values = shape.head_count * shape.value_dim;
  // Keys of length 1, as models have them: longer ones make the state grow without end.
  const float spread = 1.0f / std::sqrt(float(shape.key_dim));
  Scan scan{.q = world.rows(keys, RowSet::tokens, spread),
            .k = world.rows(keys, RowSet::tokens, spread),
            .log_decay = world.rows(keys),
            .v = world.rows(values),
            .out = world.rows(values),
            .rate = {},
            .asked = {},
            .erased = {},
            .head_count = shape.head_count,
            .key_dim = shape.key_dim,
            .value_dim = shape.value_dim,
            .state = world.state(state_floats(shape))};
  if (shape.has_rate) {
    scan.rate = world.rows(shape.head_count, RowSet::tokens, 2.0f);
    scan.a = world.decays(size_t(shape.head_count));
  } else {
    scan.asked = world.rows(keys, RowSet::tokens, spread);
    scan.erased = world.rows(keys, RowSet::tokens, 0.5f * spread);
  }
  // Decays below 1.
  const Step step = world.step();
  for (int32_t row = 0; row < world.row_count(); ++row) {
    float* log_decay = step.row(scan.log_decay, row);
    for (int32_t n = 0; n < keys; ++n) {
      log_decay[n] = std::fabs(log_decay[n]) * (shape.has_rate ? 1.0f : -1.0f);
    }
  }
  return scan;
}

constexpr Shape kShapes[] = {{1, 1, 1, true},    {4, 16, 16, false}, {3, 5, 33, true},
                             {2, 24, 70, false}, {6, 7, 130, true},  {2, 128, 128, true},
                             {2, 64, 64, false}, {1, 20, 96, true}};

TEST(ChannelDeltaScan, EveryLevelHasTheReferencesBits) {
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

// One head's row in float64. `state` is a column of it, `stride` apart.
struct Papers {
  const Scan& scan;
  const Step& step;

  const float* keys(const Rows& rows, int32_t row, int32_t head) const {
    return step.row(rows, row) + head * scan.key_dim;
  }
  double decay(int32_t row, int32_t head, int32_t n) const {
    const double a = scan.a.exists() ? double(scan.a[head]) : 1.0;
    return std::exp(double(keys(scan.log_decay, row, head)[n]) * a);
  }
  // S diag(w) - (S asked) erased^T + v k^T.
  void rwkv(double* state, int32_t row, int32_t head, double v) const {
    double known = 0;
    for (int32_t n = 0; n < scan.key_dim; ++n) {
      known += state[n * scan.value_dim] * double(keys(scan.asked, row, head)[n]);
    }
    for (int32_t n = 0; n < scan.key_dim; ++n) {
      double& s = state[n * scan.value_dim];
      s = s * decay(row, head, n) - known * double(keys(scan.erased, row, head)[n]) +
          v * double(keys(scan.k, row, head)[n]);
    }
  }
  // The decayed state first, then what it answers to the key.
  void kimi(double* state, int32_t row, int32_t head, double v) const {
    const float* k = keys(scan.k, row, head);
    const double rate = 1 / (1 + std::exp(-double(step.row(scan.rate, row)[head])));
    double known = 0;
    for (int32_t n = 0; n < scan.key_dim; ++n) {
      state[n * scan.value_dim] *= decay(row, head, n);
      known += state[n * scan.value_dim] * double(k[n]);
    }
    for (int32_t n = 0; n < scan.key_dim; ++n) {
      state[n * scan.value_dim] += rate * double(k[n]) * (v - known);
    }
  }
};

TEST(ChannelDeltaScan, ReferenceIsWhatThePapersSay) {
  for (const bool has_rate : {false, true}) {
    constexpr int32_t kHeads = 3, kKeys = 6, kValues = 5, kRows = 30;
    World world(11, {{.row_count = kRows}});
    const Scan scan = make_scan(world, {kHeads, kKeys, kValues, has_rate});
    const Step step = world.step();
    const float* before = reinterpret_cast<const float*>(world.state_before(0));
    std::vector<double> state(before, before + kHeads * kKeys * kValues);
    run_op(reference::kernel_for(scan), scan, step);
    const Papers papers{scan, step};
    double worst = 0;
    for (int32_t i = 0; i < kRows * kHeads * kValues; ++i) {
      const int32_t row = i / (kHeads * kValues), head = i / kValues % kHeads, p = i % kValues;
      double* column = state.data() + head * kKeys * kValues + p;
      const double v = double(step.row(scan.v, row)[head * kValues + p]);
      has_rate ? papers.kimi(column, row, head, v) : papers.rwkv(column, row, head, v);
      double y = 0;
      for (int32_t n = 0; n < kKeys; ++n) {
        y += column[n * kValues] * double(papers.keys(scan.q, row, head)[n]);
      }
      worst = std::max(worst,
                       relative_error(y, double(step.row(scan.out, row)[i % (kHeads * kValues)])));
    }
    EXPECT_LT(worst, 1e-5);
  }
}

TEST(ChannelDeltaScan, RowsTogetherEqualRowsAlone) {
  for (const bool has_rate : {false, true}) {
    const Shape shape{3, 16, 40, has_rate};
    std::initializer_list<Rows Scan::*> given = {
        &Scan::q, &Scan::k, &Scan::log_decay, &Scan::v, &Scan::out, &Scan::asked, &Scan::erased};
    std::initializer_list<Rows Scan::*> made = {&Scan::q, &Scan::k,   &Scan::log_decay,
                                                &Scan::v, &Scan::out, &Scan::rate};
    expect_rows_alone_alike<Scan>(
        {.row_count = 70, .has_state = false}, state_floats(shape),
        [&](World& world) { return make_scan(world, shape); }, has_rate ? made : given);
  }
}

TEST(ScaleByDots, ReferenceIsTheDotTimesTheHead) {
  World world(5, {{.row_count = 4}});
  constexpr int32_t kWidth = 30, kHeadDim = 10;
  const op::ScaleByDots op{.a = world.rows(kWidth),
                           .b = world.rows(kWidth),
                           .x = world.rows(kWidth),
                           .out = world.rows(kWidth),
                           .gain = world.parameters(kWidth),
                           .head_dim = kHeadDim};
  const Step step = world.step();
  run_op(reference::kernel_for(op), op, step);
  for (int32_t i = 0; i < 4 * kWidth; ++i) {
    const int32_t row = i / kWidth, column = i % kWidth, first = column / kHeadDim * kHeadDim;
    double dot = 0;
    for (int32_t n = first; n < first + kHeadDim; ++n) {
      dot += double(step.row(op.a, row)[n]) * double(step.row(op.b, row)[n]) * double(op.gain[n]);
    }
    const double expected = dot * double(step.row(op.x, row)[column]);
    EXPECT_LT(relative_error(expected, double(step.row(op.out, row)[column])), 1e-5);
  }
}

}  // namespace
}  // namespace cairn::test::channel_delta_test
