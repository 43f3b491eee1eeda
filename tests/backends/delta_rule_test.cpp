// The gated delta rule's scan: vector kernels against the reference bit for bit, the reference
// against float64, one step of many rows against many of one.
#include "backends/cpu/ops.h"
#include "tests/backends/same_bits.h"
#include "tests/sanitized.h"

namespace cairn::test::delta_rule_test {
namespace {

struct Shape {
  int32_t head_count, key_head_count, key_dim, value_dim;
  HeadOrder order;
};

size_t state_floats(const Shape& shape) {
  return size_t(shape.head_count) * size_t(shape.key_dim) * size_t(shape.value_dim);
}

op::GatedDeltaScan make_scan(World& world, const Shape& shape) {
  const int32_t keys = shape.key_head_count * shape.key_dim;
  const int32_t values = shape.head_count * shape.value_dim;
  // Keys of length 1, as models have them: longer ones make the state grow without end.
  const float spread = 1.0f / std::sqrt(float(shape.key_dim));
  const Rows q = world.rows(keys, RowSet::tokens, spread);
  const Rows k = world.rows(keys, RowSet::tokens, spread);
  const Rows v = world.rows(values), out = world.rows(values);
  const Rows dt = world.rows(shape.head_count, RowSet::tokens, 2.0f);
  const Rows rate = world.rows(shape.head_count, RowSet::tokens, 2.0f);
  return {.q = q,
          .k = k,
          .v = v,
          .out = out,
          .dt = dt,
          .rate = rate,
          .a = world.decays(size_t(shape.head_count)),
          .dt_bias = world.parameters(size_t(shape.head_count)),
          .head_count = shape.head_count,
          .key_head_count = shape.key_head_count,
          .key_dim = shape.key_dim,
          .value_dim = shape.value_dim,
          .order = shape.order,
          .state = world.state(state_floats(shape))};
}

constexpr HeadOrder kGrouped = HeadOrder::grouped, kTiled = HeadOrder::tiled;
constexpr Shape kShapes[] = {{1, 1, 1, 1, kGrouped},   {4, 2, 16, 16, kGrouped},
                             {4, 2, 16, 16, kTiled},   {3, 3, 5, 33, kTiled},
                             {2, 1, 24, 70, kGrouped}, {6, 2, 7, 130, kTiled},
                             {2, 1, 128, 128, kTiled}, {1, 1, 20, 96, kGrouped}};

TEST(GatedDeltaScan, EveryLevelHasTheReferencesBits) {
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

// As the paper writes it: the decayed state first, then what it answers to the key.
TEST(GatedDeltaScan, ReferenceIsTheDeltaRule) {
  for (const HeadOrder order : {kGrouped, kTiled}) {
    constexpr int32_t kHeads = 4, kKeys = 6, kValues = 5, kRows = 30;
    World world(11, {{.row_count = kRows}});
    const op::GatedDeltaScan scan = make_scan(world, {kHeads, 2, kKeys, kValues, order});
    const Step step = world.step();
    const float* before = reinterpret_cast<const float*>(world.state_before(0));
    std::vector<double> state(before, before + kHeads * kKeys * kValues);
    run_op(reference::kernel_for(scan), scan, step);
    double worst = 0;
    for (int32_t row = 0; row < kRows; ++row) {
      for (int32_t head = 0; head < kHeads; ++head) {
        const int32_t key_head = order == kGrouped ? head / 2 : head % 2;
        const float* q = step.row(scan.q, row) + key_head * kKeys;
        const float* k = step.row(scan.k, row) + key_head * kKeys;
        const double raw = double(step.row(scan.dt, row)[head]) + double(scan.dt_bias[head]);
        const double decay = std::exp(std::log1p(std::exp(raw)) * double(scan.a[head]));
        const double rate = 1 / (1 + std::exp(-double(step.row(scan.rate, row)[head])));
        for (int32_t p = 0; p < kValues; ++p) {
          double* column = state.data() + head * kKeys * kValues + p;
          double known = 0, y = 0;
          for (int32_t n = 0; n < kKeys; ++n)
            known += (column[n * kValues] *= decay) * double(k[n]);
          const double v = double(step.row(scan.v, row)[head * kValues + p]);
          const double delta = (v - known) * rate;
          for (int32_t n = 0; n < kKeys; ++n) {
            column[n * kValues] += double(k[n]) * delta;
            y += column[n * kValues] * double(q[n]);
          }
          worst = std::max(worst,
                           relative_error(y, double(step.row(scan.out, row)[head * kValues + p])));
        }
      }
    }
    EXPECT_LT(worst, 1e-5);
  }
}

TEST(GatedDeltaScan, RowsTogetherEqualRowsAlone) {
  using Scan = op::GatedDeltaScan;
  const Shape shape{3, 3, 16, 40, kGrouped};
  expect_rows_alone_alike<Scan>({.row_count = 70, .has_state = false}, state_floats(shape),
                                [&](World& world) { return make_scan(world, shape); },
                                {&Scan::q, &Scan::k, &Scan::v, &Scan::out, &Scan::dt, &Scan::rate});
}

}  // namespace
}  // namespace cairn::test::delta_rule_test
