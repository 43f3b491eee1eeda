// As many rows are taken as make tokens cheapest: compared with trying all.
#include "draft/row_choice.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/draft/world.h"

namespace cairn::draft::row_choice_test {
namespace {

using test::kFlat;
using test::kSteep;
using test::kUsual;
using Reaches = std::vector<std::vector<float>>;
using Counts = std::vector<int32_t>;

Counts chosen(const Reaches& reaches, int32_t row_count_max, FunctionRef<double(int32_t)> seconds) {
  std::vector<std::span<const float>> reach(reaches.begin(), reaches.end());
  Counts counts(reaches.size(), -1);
  choose_counts(reach, row_count_max, seconds, counts);
  return counts;
}

double value(const Reaches& reaches, const Counts& counts, FunctionRef<double(int32_t)> seconds) {
  double tokens = 0;
  int32_t rows = 0;
  for (size_t i = 0; i < reaches.size(); ++i) {
    tokens += 1;
    rows += 1 + counts[i];
    for (int32_t k = 0; k < counts[i]; ++k) tokens += double(reaches[i][size_t(k)]);
  }
  return tokens / seconds(rows);
}

// The best of all counts of all sequences.
double best_value(const Reaches& reaches, int32_t row_count_max,
                  FunctionRef<double(int32_t)> seconds, Counts counts = {}) {
  if (counts.size() == reaches.size()) {
    int32_t rows = int32_t(counts.size());
    for (const int32_t count : counts) rows += count;
    return rows > row_count_max ? 0 : value(reaches, counts, seconds);
  }
  double best = 0;
  const size_t next = counts.size();
  counts.push_back(0);
  for (; size_t(counts[next]) <= reaches[next].size(); ++counts[next]) {
    best = std::max(best, best_value(reaches, row_count_max, seconds, counts));
  }
  return best;
}

TEST(RowChoice, IsAsGoodAsTheBestOfAllCounts) {
  RandomStream random(5, 0, 0);
  for (int round = 0; round < 2000; ++round) {
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
    const Counts counts = chosen(reaches, row_count_max, seconds);
    const double best = best_value(reaches, row_count_max, seconds);
    // What gains less than 1 % may be left.
    EXPECT_GE(value(reaches, counts, seconds) * 1.0101, best) << round;
  }
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
