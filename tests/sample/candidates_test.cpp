// Narrowing candidates, compared with sorting all of them; and what NaN and infinities do.
#include "sample/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace cairn::sample {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Few distinct values, so that ties are everywhere.
std::vector<float> random_logits(size_t count, uint32_t seed, int distinct) {
  std::mt19937 random(seed);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = float(int(random() % uint32_t(distinct))) * 0.25f - 3;
  return logits;
}

std::vector<int32_t> ids(Candidates& candidates) {
  std::vector<int32_t> out;
  for (const Candidate& c : candidates.list()) out.push_back(index_of(c.token));
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<int32_t> sorted_ids(std::span<const float> logits) {
  std::vector<int32_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = int32_t(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
  return order;
}

TEST(Candidates, KeepTopEqualsSorting) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const auto logits = random_logits(1 + seed * 7, seed, 20);
    for (const int32_t k : {1, 2, 5, 40, 1000}) {
      Candidates candidates;
      candidates.reset(logits);
      candidates.keep_top(k);
      auto expected = sorted_ids(logits);
      expected.resize(std::min(expected.size(), size_t(k)));
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(ids(candidates), expected) << "seed " << seed << ", k " << k;
      // The second way: narrowing a list that is already there.
      candidates.reset(logits);
      candidates.keep_from(-FLT_MAX);
      candidates.keep_top(k);
      EXPECT_EQ(ids(candidates), expected) << "seed " << seed << ", k " << k;
    }
  }
}

TEST(Candidates, KeepNucleusEqualsSorting) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const auto logits = random_logits(1 + seed * 5, seed, 1000);
    for (const float share : {0.0f, 0.1f, 0.5f, 0.9f, 0.999f}) {
      const auto order = sorted_ids(logits);
      double total = 0;
      for (const float logit : logits) total += std::exp(double(logit));
      std::vector<int32_t> expected;
      double reached = 0;
      for (const int32_t id : order) {
        // Not at an edge that rounding could move.
        ASSERT_GT(std::abs(reached / total - double(share)), expected.empty() ? -1 : 1e-7);
        if (!expected.empty() && reached >= double(share) * total) break;
        expected.push_back(id);
        reached += std::exp(double(logits[size_t(id)]));
      }
      std::sort(expected.begin(), expected.end());
      for (const bool narrowed_before : {false, true}) {
        Candidates candidates;
        candidates.reset(logits);
        if (narrowed_before) candidates.keep_top(int32_t(logits.size()));
        candidates.keep_nucleus(share);
        EXPECT_EQ(ids(candidates), expected) << "seed " << seed << ", share " << share;
      }
    }
  }
}

TEST(Candidates, KeepFromAlwaysLeavesTheLikeliest) {
  const std::vector<float> logits{1, 3, 2};
  Candidates candidates;
  candidates.reset(logits);
  candidates.keep_from(100);
  EXPECT_EQ(ids(candidates), std::vector<int32_t>{1});
  candidates.reset(logits);
  candidates.keep_from(2);
  EXPECT_EQ(ids(candidates), (std::vector<int32_t>{1, 2}));
}

TEST(Candidates, NanAndMinusInfinityAreNoCandidates) {
  const std::vector<float> logits{kNan, 1, -kInfinity, kInfinity, -kNan, 0};
  for (const int32_t k : {1, 2, 3, 6}) {
    Candidates candidates;
    candidates.reset(logits);
    EXPECT_EQ(candidates.max_logit(), FLT_MAX);
    candidates.keep_top(k);
    const std::vector<int32_t> all{3, 1, 5};
    std::vector<int32_t> expected(all.begin(), all.begin() + std::min(k, 3));
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(ids(candidates), expected);
  }
  Candidates candidates;
  candidates.reset(logits);
  candidates.keep_nucleus(1);
  EXPECT_EQ(ids(candidates), std::vector<int32_t>{3});
  candidates.reset(std::vector<float>{kNan, -kInfinity});
  EXPECT_TRUE(candidates.empty());
}

TEST(Candidates, DividingKeepsTheMaximumTrue) {
  const std::vector<float> logits{2, -4, 8};
  Candidates candidates;
  candidates.reset(logits);
  candidates.divide(2);
  EXPECT_EQ(candidates.max_logit(), 4);
  candidates.divide(1e-45f);
  EXPECT_EQ(candidates.max_logit(), FLT_MAX);
  for (const Candidate& c : candidates.list()) EXPECT_TRUE(std::isfinite(c.logit));
}

TEST(Likeliest, LowestIdOfEqualsAndNeverNan) {
  EXPECT_EQ(likeliest(std::vector<float>{1, 5, 5, 2}), Token(1));
  EXPECT_EQ(likeliest(std::vector<float>{kNan, -3, kNan, -3}), Token(1));
  EXPECT_EQ(likeliest(std::vector<float>{0, kInfinity, kInfinity}), Token(1));
  EXPECT_EQ(likeliest(std::vector<float>{-0.0f, 0.0f}), Token(0));
  EXPECT_EQ(likeliest(std::vector<float>{kNan, -kInfinity}), Token(-1));
  EXPECT_EQ(likeliest(std::vector<float>{}), Token(-1));
}

}  // namespace
}  // namespace cairn::sample
