// As many rows are taken as make tokens cheapest: compared with trying all.
#include "draft/row_choice.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/draft/world.h"

namespace cairn::draft::row_choice_test {
namespace {

using test::kFlat;
using test::kSteep;
using test::kUsual;
using Reaches = std::vector<std::vector<float>>;
using Counts = std::vector<int32_t>;

Counts chosen(const Reaches& reaches, int32_t row_count_max, FunctionRef<double(int32_t)> seconds,
              double usual_rate = 0) {
  std::vector<std::span<const float>> reach(reaches.begin(), reaches.end());
  Counts counts(reaches.size(), -1);
  choose_counts(reach, row_count_max, seconds, usual_rate, counts);
  return counts;
}

struct Step {
  double tokens = 0;
  int32_t rows = 0;
};

Step step_of(const Reaches& reaches, const Counts& counts) {
  Step step;
  for (size_t i = 0; i < reaches.size(); ++i) {
    step.tokens += 1;
    step.rows += 1 + counts[i];
    for (int32_t k = 0; k < counts[i]; ++k) step.tokens += double(reaches[i][size_t(k)]);
  }
  return step;
}

// The best of all counts of all sequences.
double best_value(const Reaches& reaches, int32_t row_count_max,
                  FunctionRef<double(const Step&)> value, Counts counts = {}) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  if (counts.size() == reaches.size()) {
    const Step step = step_of(reaches, counts);
    return step.rows > row_count_max ? kNone : value(step);
  }
  double best = kNone;
  const size_t next = counts.size();
  counts.push_back(0);
  for (; size_t(counts[next]) <= reaches[next].size(); ++counts[next]) {
    best = std::max(best, best_value(reaches, row_count_max, value, counts));
  }
  return best;
}

TEST(RowChoice, IsAsGoodAsTheBestOfAllCounts) {
  RandomStream random(5, 0, 0);
  for (int round = 0; round < 4000; ++round) {
    Reaches reaches(1 + random.below(3));
    for (auto& reach : reaches) {
      reach.resize(random.below(6));
      float left = 1;
      for (float& value : reach) value = left *= random.unit();
    }
    // Curves with flats and cliffs.
    std::vector<double> times(20);
    double time = 1;
    for (double& each : times)
      each = time += random.below(3) == 0 ? double(random.unit()) * 0.8 : 0;
    const auto seconds = [&](int32_t rows) { return times[size_t(rows)]; };
    const int32_t row_count_max = int32_t(reaches.size() + random.below(12));
    const double usual_rate = round % 2 == 0 ? 0 : 3 * double(random.unit());
    const Step made = step_of(reaches, chosen(reaches, row_count_max, seconds, usual_rate));
    const auto rate = [&](const Step& step) { return step.tokens / seconds(step.rows); };
    const auto gain = [&](const Step& step) {
      return step.tokens - usual_rate * seconds(step.rows);
    };
    // What gains less than 1 % may be left.
    const double best_rate = best_value(reaches, row_count_max, rate);
    if (best_rate >= usual_rate) {
      EXPECT_GE(rate(made) * 1.0101, best_rate) << round;
    } else {
      const double least = 0.0101 * double(reaches.size());
      EXPECT_GE(gain(made) + least, best_value(reaches, row_count_max, gain)) << round;
    }
  }
}

// A second row takes 0.4 times as long as the first one and is right half the time. Where all steps
// are like that it pays; where steps make two tokens in the time of one row it does not: the token
// is made by one of these in less.
TEST(RowChoice, UnlikelyTokensAreLeftToBetterSteps) {
  const auto seconds = [](int32_t rows) { return 1.0 + 0.4 * (rows - 1); };
  EXPECT_EQ(chosen({{.5f}}, 8, seconds), Counts({1}));
  EXPECT_EQ(chosen({{.5f}}, 8, seconds, 1.0), Counts({1}));
  EXPECT_EQ(chosen({{.5f}}, 8, seconds, 2.0), Counts({0}));
  // Better steps themselves have as many as make them best.
  const Reaches sure = {{.99f, .98f, .97f, .96f, .6f, .3f}};
  EXPECT_EQ(chosen(sure, 8, seconds), Counts({4}));
  EXPECT_EQ(chosen(sure, 8, seconds, 1.5), Counts({4}));
}

TEST(RowChoice, ReturnsWhatIsExpectedOfTheStep) {
  const std::vector<float> reach = {.9f, .8f};
  const std::array<std::span<const float>, 2> reaches = {reach, {}};
  std::array<int32_t, 2> counts = {};
  const auto free = [](int32_t) { return 1.0; };
  EXPECT_NEAR(choose_counts(reaches, 8, free, 0, counts), 3.7, 1e-6);
  EXPECT_NEAR(choose_counts(reaches, 3, free, 0, counts), 2.9, 1e-6);
  EXPECT_NEAR(choose_counts(reaches, 8, [](int32_t) { return 0.0; }, 0, counts), 2, 1e-6);
}

TEST(UsualRate, IsThatOfTheNewestSteps) {
  UsualRate rate;
  EXPECT_EQ(rate.tokens_per_second(), 0);
  for (int i = 0; i < 100; ++i) rate.learn(3, 0.010);
  EXPECT_NEAR(rate.tokens_per_second(), 300, 1e-6);
  for (int i = 0; i < 1000; ++i) rate.learn(1, 0.010);
  EXPECT_NEAR(rate.tokens_per_second(), 100, 1);
}

TEST(RowChoice, LooksPastARowThatDoesNotPayByItself) {
  const auto seconds = [](int32_t rows) { return rows == 1 ? 1.0 : 1.9; };
  EXPECT_EQ(chosen({{.8f, .7f, .6f}}, 8, seconds), Counts({3}));
  EXPECT_EQ(chosen({{.8f}}, 8, seconds), Counts({0}));
}

TEST(RowChoice, RowsGoToWhomTheyAreWorthMost) {
  const auto seconds = [](int32_t rows) { return kUsual(rows); };
  EXPECT_EQ(chosen({{.9f, .1f}, {}, {.95f, .9f, .85f}}, 7, seconds), Counts({1, 0, 3}));
  EXPECT_EQ(chosen({{.9f, .9f}, {.9f, .9f}}, 5, seconds), Counts({2, 1}));
}

TEST(RowChoice, HopelessDraftsGetNothing) {
  for (const auto& curve : {kUsual, kFlat, kSteep}) {
    const auto seconds = [&](int32_t rows) { return curve(rows); };
    EXPECT_EQ(chosen({{.005f, .004f}}, 17, seconds), Counts({0}));
  }
}

TEST(RowChoice, AFallingTimeIsNoGain) {
  const auto seconds = [](int32_t rows) { return rows == 2 ? 3.0 : 1.0; };
  EXPECT_EQ(chosen({{.5f, .5f}}, 8, seconds), Counts({0}));
}

TEST(RowChoice, UnknownTimesAreTriedAFewAtATime) {
  EXPECT_EQ(chosen({{.9f, .9f}}, 8, [](int32_t) { return 0.0; }), Counts({0}));
  const auto plain_known = [](int32_t rows) { return rows == 1 ? 1.0 : 0.0; };
  EXPECT_EQ(chosen({{.9f, .9f, .9f, .9f}}, 8, plain_known), Counts({2}));
  EXPECT_EQ(chosen({{.4f, .3f}}, 8, plain_known), Counts({0}));
}

TEST(RowChoice, ReachThatIsNoChanceEndsADraft) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto seconds = [](int32_t rows) { return kFlat(rows); };
  EXPECT_EQ(chosen({{.9f, nan, .9f}, {nan}, {0.0f}}, 8, seconds), Counts({1, 0, 0}));
  EXPECT_EQ(chosen({}, 8, seconds), Counts());
  EXPECT_EQ(chosen({{.9f}}, 1, seconds), Counts({0}));
}

}  // namespace
}  // namespace cairn::draft::row_choice_test
