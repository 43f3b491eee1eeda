// The router: its order on numbers that have none, its ties, and its weights against float64.
// (There is no vector kernel; every level uses the reference's.)
#include <bit>
#include <limits>
#include <numeric>

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

Routed route(const op::Route& op, std::vector<float> logits, size_t k) {
  std::vector<float> scratch(logits.size() + size_t(op.group_count)), chosen(k), weights(k);
  reference::route_row(op, logits, scratch, chosen, weights);
  Routed out{.chosen = {}, .weights = weights};
  for (const float slot : chosen) out.chosen.push_back(std::bit_cast<int32_t>(slot));
  return out;
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
