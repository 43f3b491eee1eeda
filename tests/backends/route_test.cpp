// The router: its order on numbers that have none, its ties, its weights against float64, and its
// bits at every level of instruction sets.
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "backends/reference/routing.h"
#include "tests/backends/same_bits.h"

namespace cairn::test::route_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

struct Routed {
  std::vector<int32_t> chosen;
  std::vector<float> weights;
};

op::Route rule(RouterScore score, bool normalize = false, Constant bias = {}) {
  op::Route op{};
  op.score = score;
  op.normalize = normalize;
  op.selection_bias = bias;
  return op;
}

using Logits = std::vector<std::vector<float>>;  // By row, all of one width.

// What a kernel leaves of rows of logits.
struct Outcome {
  std::vector<std::byte> memory;
  std::vector<Routed> rows;
};

Outcome run_rows(op::Route op, const Logits& logits, int32_t k, IsaLevel level) {
  const int32_t row_count = int32_t(logits.size());
  World world(1, {{.row_count = row_count}}, size_t(1) << 20);
  op.logits = world.rows(int32_t(logits[0].size()));
  op.chosen = world.rows(k);
  op.weights = world.rows(k);
  const Step step = world.step();
  for (int32_t row = 0; row < row_count; ++row) {
    std::copy(logits[size_t(row)].begin(), logits[size_t(row)].end(), step.row(op.logits, row));
  }
  run_op(level == IsaLevel::scalar ? reference::kernel_for(op) : cpu::choose_ops_kernel(op, level),
         op, step);
  Outcome out{.memory = {world.memory().begin(), world.memory().end()}, .rows = {}};
  for (int32_t row = 0; row < row_count; ++row) {
    Routed& routed = out.rows.emplace_back();
    const float* weights = step.row(op.weights, row);
    routed.weights.assign(weights, weights + k);
    for (int32_t rank = 0; rank < k; ++rank) {
      routed.chosen.push_back(std::bit_cast<int32_t>(step.row(op.chosen, row)[rank]));
    }
  }
  return out;
}

// The reference's; fails where a level's kernel differs.
std::vector<Routed> route_rows(const op::Route& op, const Logits& logits, int32_t k) {
  Outcome expected = run_rows(op, logits, k, IsaLevel::scalar);
  for (const IsaLevel level : vector_levels()) {
    const Outcome found = run_rows(op, logits, k, level);
    EXPECT_TRUE(same_bits(expected.memory, found.memory)) << name(level);
  }
  return std::move(expected.rows);
}

Routed route(const op::Route& op, const std::vector<float>& logits, int32_t k) {
  return route_rows(op, {logits}, k)[0];
}

TEST(Route, TiesGoToTheLowestIndexAndNanComesLast) {
  const op::Route op = rule(RouterScore::softmax_chosen);
  using Chosen = std::vector<int32_t>;
  EXPECT_EQ((Chosen{1, 3, 0}), route(op, {2, 5, 1, 5, 2}, 3).chosen);
  EXPECT_EQ((Chosen{2, 0, 3, 1}), route(op, {0.0f, kNan, 1.0f, -0.0f}, 4).chosen);
  EXPECT_EQ((Chosen{3, 1, 0, 2}), route(op, {-kInfinity, 0, kNan, kInfinity}, 4).chosen);
  EXPECT_EQ((Chosen{0, 1, 2}), route(op, {kNan, -kNan, kNan}, 3).chosen);
}

TEST(Route, SigmoidOfTheChosenDoesNotTieWhereTheSigmoidSaturates) {
  // sigmoid(30) == sigmoid(40) == 1 in f32: by sigmoid, expert 0 would win.
  const Routed found = route(rule(RouterScore::sigmoid_chosen), {30, 40, -1}, 1);
  EXPECT_EQ((std::vector<int32_t>{1}), found.chosen);
  EXPECT_EQ(1.0f, found.weights[0]);
  EXPECT_NEAR(1 / (1 + std::exp(1.0)),
              double(route(rule(RouterScore::sigmoid_chosen), {-1, -2}, 1).weights[0]), 1e-7);
}

// Only scores within 2 % count beside the chosen one, and none that has been chosen before.
TEST(Route, SparseMixerWeighsAgainstWhatIsClose) {
  const op::Route op = rule(RouterScore::sparse_mixer);
  const Routed found = route(op, {0.5f, 0.99f, -3.0f, 1.0f}, 2);
  EXPECT_EQ((std::vector<int32_t>{3, 1}), found.chosen);
  EXPECT_NEAR(1 / (1 + std::exp(-0.01)), double(found.weights[0]), 1e-6);
  EXPECT_EQ(1.0f, found.weights[1]);
  // Below zero the reach is that of the other score's magnitude.
  const Routed negative = route(op, {-2.0f, -1.0f, -1.019f, -1.03f}, 2);
  EXPECT_EQ((std::vector<int32_t>{1, 2}), negative.chosen);
  EXPECT_NEAR(1 / (1 + std::exp(-0.019)), double(negative.weights[0]), 1e-6);
  EXPECT_NEAR(1 / (1 + std::exp(-0.011)), double(negative.weights[1]), 1e-6);
}

TEST(Route, OrderKeySortsAsNumbersDo) {
  const float ascending[] = {-kInfinity, -1e30f, -1.0f,  -1e-42f, 0.0f,
                             1e-42f,     1.0f,   1.001f, 1e30f,   kInfinity};
  for (size_t i = 1; i < std::size(ascending); ++i) {
    EXPECT_LT(reference::order_key(ascending[i - 1]), reference::order_key(ascending[i]));
  }
  EXPECT_LT(reference::order_key(kNan), reference::order_key(-kInfinity));
  EXPECT_EQ(reference::order_key(0.0f), reference::order_key(-0.0f));
}

TEST(Route, BiasChoosesAndDoesNotWeigh) {
  const std::vector<float> bias = {0, 0, 10, 0};
  const Routed found = route(rule(RouterScore::sigmoid, false, bias), {3.0f, 1.0f, -2.0f, 0.0f}, 2);
  EXPECT_EQ((std::vector<int32_t>{2, 0}), found.chosen);
  EXPECT_NEAR(1 / (1 + std::exp(2.0)), double(found.weights[0]), 1e-7);
  EXPECT_NEAR(1 / (1 + std::exp(-3.0)), double(found.weights[1]), 1e-7);
}

TEST(Route, OnlyExpertsOfTheBestGroupsAreChosen) {
  op::Route op = rule(RouterScore::softmax_chosen);
  op.group_count = 3;
  op.group_used_count = 1;
  op.group_best_count = 1;
  const std::vector<float> logits = {9, 0, 0, 8, 7, 0, 5, 5, 6};
  using Chosen = std::vector<int32_t>;
  EXPECT_EQ((Chosen{0, 1}), route(op, logits, 2).chosen);  // The best one is in the first group.
  op.group_best_count = 2;
  EXPECT_EQ((Chosen{3, 4}), route(op, logits, 2).chosen);  // The best two are in the second.
  op.group_best_count = 3;
  EXPECT_EQ((Chosen{8, 6, 7}), route(op, logits, 3).chosen);
  op.group_used_count = 2;
  EXPECT_EQ((Chosen{3, 4, 8, 6}), route(op, logits, 4).chosen);
  op.group_used_count = 3;
  EXPECT_EQ((Chosen{0, 3, 4, 8}), route(op, logits, 4).chosen);
  const std::vector<float> bias = {0, 0, 0, 0, -5, 0, 0, 0, 0};
  op.selection_bias = bias;
  op.group_used_count = 1;
  op.group_best_count = 2;
  EXPECT_EQ((Chosen{8, 6}), route(op, logits, 2).chosen);
  op.selection_bias = {};
  EXPECT_EQ((Chosen{0, 1}), route(op, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 2).chosen);
}

// Rows that models do not give, or only broken ones.
enum class Kind : uint8_t {
  normal,
  few_values,
  all_equal,
  all_nan,
  no_numbers,
  zeros,
  wide,
  count
};

float hostile(Kind kind, std::mt19937& random) {
  const auto pick = [&random](auto... values) {
    const float all[] = {values...};
    return all[random() % std::size(all)];
  };
  const float even = float(int32_t(random())) * 0x1p-29f;  // -4 … 4
  switch (kind) {
    case Kind::few_values:
      return pick(-1.5f, -1.0f, 0.0f, 1.0f, 2.0f);
    case Kind::all_equal:
      return 0.25f;
    case Kind::all_nan:
      return pick(kNan, -kNan);
    case Kind::no_numbers:
      return pick(kNan, -kNan, kInfinity, -kInfinity, 0.0f, -0.0f, even);
    case Kind::zeros:
      return pick(0.0f, -0.0f, 1e-44f, -1e-44f);
    case Kind::wide:
      return pick(even * 1e37f, even * 40, even * 1e-38f, -kInfinity);
    default:
      return even;
  }
}

Logits hostile_rows(int32_t width, int32_t row_count, std::mt19937& random) {
  Logits rows;
  for (int32_t row = 0; row < row_count; ++row) {
    const Kind kind = Kind(row % int32_t(Kind::count));
    std::vector<float>& logits = rows.emplace_back();
    for (int32_t i = 0; i < width; ++i) logits.push_back(hostile(kind, random));
  }
  return rows;
}

constexpr RouterScore kScores[] = {RouterScore::softmax_all, RouterScore::softmax_chosen,
                                   RouterScore::sigmoid, RouterScore::sigmoid_chosen,
                                   RouterScore::sparse_mixer};
constexpr int32_t kExperts[] = {1,  2,  3,  7,  8,   9,   15,  16,  17,  24,  31,
                                32, 33, 60, 64, 100, 128, 129, 160, 256, 257, 512};

TEST(Route, EveryLevelHasTheReferencesBits) {
  std::mt19937 random(7);
  for (const int32_t experts : kExperts) {
    for (const RouterScore score : kScores) {
      op::Route op = rule(score, random() % 2 == 0);
      op.scale = random() % 2 == 0 ? 1.0f : 2.5f;
      std::vector<float> bias;
      for (int32_t i = 0; i < experts; ++i) bias.push_back(hostile(Kind::few_values, random));
      if (random() % 2 == 0) op.selection_bias = bias;
      const int32_t k = 1 + int32_t(random() % uint32_t(std::min(experts, 16)));
      route_rows(op, hostile_rows(experts, 21, random), k);
      if (HasFailure()) FAIL() << experts << " experts, score " << int32_t(score) << ", k " << k;
    }
  }
}

TEST(Route, EveryLevelHasTheReferencesBitsWithGroups) {
  std::mt19937 random(8);
  for (const auto& [groups, size] :
       {std::pair{2, 4}, {3, 3}, {4, 16}, {8, 8}, {8, 20}, {8, 32}, {16, 16}, {20, 5}, {40, 3}}) {
    for (const RouterScore score : kScores) {
      op::Route op = rule(score, true);
      op.group_count = groups;
      op.group_used_count = 1 + int32_t(random() % uint32_t(groups));
      op.group_best_count = 1 + int32_t(random() % uint32_t(size));
      std::vector<float> bias;
      for (int32_t i = 0; i < groups * size; ++i) bias.push_back(hostile(Kind::normal, random));
      if (random() % 2 == 0) op.selection_bias = bias;
      const int32_t most = std::min(op.group_used_count * size, 16);
      const int32_t k = 1 + int32_t(random() % uint32_t(most));
      route_rows(op, hostile_rows(groups * size, 21, random), k);
      if (HasFailure()) FAIL() << groups << " groups of " << size << ", k " << k;
    }
  }
}

// More rows than a task has, in rows that end in the middle of one.
TEST(Route, EveryRowIsRoutedOnce) {
  std::mt19937 random(9);
  for (const auto& [experts, row_count] : {std::pair{8, 130}, {128, 65}, {512, 17}}) {
    const Logits logits = hostile_rows(experts, row_count, random);
    const op::Route op = rule(RouterScore::softmax_all, true);
    const std::vector<Routed> all = route_rows(op, logits, 4);
    for (size_t row = 0; row < logits.size(); ++row) {
      EXPECT_EQ(route(op, logits[row], 4).chosen, all[row].chosen);
    }
  }
}

// The reference looks at all experts for each rank: against an order of them all.
TEST(Route, ChosenAreTheFirstOfAStableSort) {
  std::mt19937 random(10);
  const Logits logits = hostile_rows(129, 42, random);
  const std::vector<Routed> found = route_rows(rule(RouterScore::softmax_chosen), logits, 16);
  for (size_t row = 0; row < logits.size(); ++row) {
    std::vector<int32_t> order(129);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const float left = logits[row][size_t(a)], right = logits[row][size_t(b)];
      return left > right || (std::isnan(right) && !std::isnan(left));
    });
    order.resize(16);
    EXPECT_EQ(order, found[row].chosen) << row;
  }
}

TEST(Route, AllScoresZeroStayZero) {
  const op::Route op = rule(RouterScore::sigmoid, true);
  EXPECT_EQ((std::vector<float>{0, 0}), route(op, {-500, -500, -500}, 2).weights);
}

TEST(Route, WeightsAreTheFormulas) {
  for (const RouterScore score :
       {RouterScore::softmax_all, RouterScore::softmax_chosen, RouterScore::sigmoid}) {
    for (const bool normalize : {false, true}) {
      World world(5, {{.row_count = 8}});
      const Rows logits = world.rows(37, RowSet::tokens, 2.0f), chosen = world.rows(5);
      const op::Route op{.logits = logits,
                         .chosen = chosen,
                         .weights = world.rows(5),
                         .score = score,
                         .normalize = normalize,
                         .scale = 2.5f};
      const Step step = world.step();
      run_op(reference::kernel_for(op), op, step);
      for (int32_t row = 0; row < 8; ++row) {
        std::vector<double> x(step.row(logits, row), step.row(logits, row) + 37);
        std::vector<int32_t> order(37);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int32_t a, int32_t b) { return x[size_t(a)] > x[size_t(b)]; });
        double all = 0, of_chosen = 0;
        for (const double value : x) all += std::exp(value);
        std::vector<double> weights;
        for (size_t rank = 0; rank < 5; ++rank) {
          const double value = x[size_t(order[rank])];
          const double weight = score == RouterScore::softmax_all ? std::exp(value) / all
                                : score == RouterScore::sigmoid   ? 1 / (1 + std::exp(-value))
                                                                  : std::exp(value);
          weights.push_back(weight);
          of_chosen += weight;
        }
        const bool divide = normalize || score == RouterScore::softmax_chosen;
        for (size_t rank = 0; rank < 5; ++rank) {
          EXPECT_EQ(order[rank], std::bit_cast<int32_t>(step.row(chosen, row)[rank]));
          EXPECT_NEAR(2.5 * weights[rank] / (divide ? of_chosen : 1.0),
                      double(step.row(op.weights, row)[rank]), 1e-6);
        }
      }
    }
  }
}

}  // namespace
}  // namespace cairn::test::route_test
