// Narrowing candidates, compared with sorting all of them; masks, changed logits and divisors, of
// which the whole is never copied; and what NaN and infinities do.
#include "sample/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sample/passes.h"

namespace cairn::sample::candidates_test {
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

using Pairs = std::vector<std::pair<int32_t, float>>;

Pairs pairs_of(std::span<const Candidate> list) {
  Pairs out;
  for (const Candidate& c : list) out.emplace_back(index_of(c.token), c.logit);
  std::sort(out.begin(), out.end());
  return out;
}

// A sorted list of all, the plain way.
std::vector<Candidate> sorted(std::span<const float> logits) {
  std::vector<Candidate> order;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] >= -FLT_MAX) order.push_back({Token(i), std::min(logits[i], FLT_MAX)});
  }
  std::sort(order.begin(), order.end(), is_before);
  return order;
}

// The same candidates with the same logits in all forms that they may have: whole, whole with a
// mask, changes and a divisor, a list in order of ids, a list in another order.
struct Forms {
  explicit Forms(std::vector<float> wanted) : logits(std::move(wanted)), raw(logits) {
    std::mt19937 random(uint32_t(logits.size()));
    mask.assign(logits.size() / 64 + 1, ~uint64_t(0));
    for (size_t i = 0; i < logits.size(); ++i) {
      const uint32_t kind = random() % 8;
      const bool is_changed = kind == 1;
      if (is_changed) changed.push_back(Token(i));
      // One token in eight, and all of every third piece.
      if ((kind == 0 && i > 0) || i / kChunk % 3 == 1) {  // Forbidden, whatever it was.
        mask[i / 64] &= ~(uint64_t(1) << (i % 64));
        raw[i] = 100;
        logits[i] = -kInfinity;
      } else if (is_changed) {
        raw[i] = -50;
      } else {
        raw[i] = logits[i] * 2;
      }
    }
    allowed = mask;
  }
  std::vector<Candidates> make() {
    std::vector<Candidates> forms(4);
    forms[0].reset(logits);
    forms[1].reset(raw, &allowed);
    forms[1].divide(2);
    forms[1].change(changed, [&](size_t i, float) { return logits[size_t(index_of(changed[i]))]; });
    forms[2].reset(logits);
    forms[2].list();
    forms[3].reset(logits);
    forms[3].change_list([](std::vector<Candidate>& list) {
      std::shuffle(list.begin(), list.end(), std::mt19937(5));
    });
    return forms;
  }
  std::vector<float> logits, raw;
  std::vector<uint64_t> mask;
  TokenMask allowed;
  std::vector<Token> changed;
};

TEST(Candidates, AllFormsHoldTheSame) {
  for (const size_t count : {1, 63, 64, 65, 255, 256, 257, 1000, 5000}) {
    Forms forms(random_logits(count, uint32_t(count), 50));
    const auto expected = sorted(forms.logits);
    for (Candidates& candidates : forms.make()) {
      EXPECT_EQ(candidates.max_logit(), expected[0].logit);
      EXPECT_EQ(candidates.logit_of(expected[0].token), expected[0].logit);
      double total = 0, weighted = 0, values = 0, squares = 0;
      for (const Candidate& c : expected) {
        const double off = double(c.logit) - double(expected[0].logit);
        total += std::exp(off);
        weighted += std::exp(off) * off;
        values += off;
        squares += off * off;
      }
      const ExpSums sums = candidates.exp_sums();
      EXPECT_NEAR(sums.total / total, 1, 1e-5);
      EXPECT_NEAR(sums.weighted, weighted, 1e-5 * std::abs(weighted) + 1e-9);
      EXPECT_EQ(candidates.value_sums().count, expected.size());
      EXPECT_NEAR(candidates.value_sums().total, values, 1e-5 * std::abs(values));
      EXPECT_NEAR(candidates.value_sums().squares, squares, 1e-5 * squares);
      EXPECT_EQ(pairs_of(candidates.top(7)),
                pairs_of(std::span(expected).first(std::min<size_t>(7, expected.size()))));
      EXPECT_EQ(pairs_of(candidates.list()), pairs_of(expected));
    }
  }
}

TEST(Candidates, KeepTopEqualsSorting) {
  for (const size_t count : {1, 5, 300, 2000}) {
    for (const int distinct : {1, 20, 100000}) {
      Forms forms(random_logits(count, uint32_t(count), distinct));
      for (const size_t k : {1, 2, 5, 40, 300, 1000, 100000}) {
        auto expected = sorted(forms.logits);
        expected.resize(std::min(expected.size(), k));
        for (Candidates& candidates : forms.make()) {
          candidates.keep_top(k);
          EXPECT_EQ(pairs_of(candidates.list()), pairs_of(expected)) << count << ", k " << k;
        }
      }
    }
  }
}

TEST(Candidates, KeepFromEqualsSortingAndAlwaysLeavesTheLikeliest) {
  for (const size_t count : {1, 5, 300, 2000}) {
    Forms forms(random_logits(count, uint32_t(count), 30));
    for (const float floor : {-kInfinity, -2.0f, 0.25f, 3.9f, 100.0f, kNan}) {
      for (const size_t min_keep : {0, 1, 3, 50}) {
        const auto all = sorted(forms.logits);
        // NaN and what is too high leave the likeliest.
        const float effective = floor < all[0].logit ? floor : all[0].logit;
        std::vector<Candidate> expected;
        for (size_t i = 0; i < all.size(); ++i) {
          if (i == 0 || i < min_keep || all[i].logit >= effective) {
            expected.push_back(all[i]);
          }
        }
        for (Candidates& candidates : forms.make()) {
          candidates.keep_from(floor, min_keep);
          EXPECT_EQ(pairs_of(candidates.list()), pairs_of(expected)) << floor << " " << min_keep;
        }
      }
    }
  }
}

TEST(Candidates, KeepNucleusEqualsSorting) {
  for (const size_t count : {1, 7, 100, 3000}) {
    Forms forms(random_logits(count, uint32_t(count), 1000));
    for (const float share : {0.0f, 0.1f, 0.5f, 0.9f, 0.9999f}) {
      for (const size_t min_keep : {0, 10}) {
        const auto all = sorted(forms.logits);
        double total = 0, reached = 0;
        for (const Candidate& c : all) total += std::exp(double(c.logit));
        std::vector<Candidate> expected;
        bool is_edge = false;
        for (const Candidate& c : all) {
          const bool is_full = !expected.empty() && expected.size() >= min_keep;
          // Not at an edge that rounding could move.
          is_edge |= is_full && std::abs(reached / total - double(share)) < 1e-6;
          if (is_full && reached >= double(share) * total) break;
          expected.push_back(c);
          reached += std::exp(double(c.logit));
        }
        if (is_edge) continue;
        for (Candidates& candidates : forms.make()) {
          candidates.keep_nucleus(share, min_keep);
          EXPECT_EQ(pairs_of(candidates.list()), pairs_of(expected)) << count << " " << share;
        }
      }
    }
  }
}

TEST(Candidates, AFlatNucleusIsFoundToo) {
  const std::vector<float> logits(10000, 1.5f);
  Candidates candidates;
  candidates.reset(logits);
  candidates.keep_nucleus(0.75f, 0);
  ASSERT_EQ(candidates.list().size(), 7500u);
  for (const Candidate& c : candidates.list()) EXPECT_LT(index_of(c.token), 7500);
}

TEST(Candidates, AtLeastIsSortedAndChangesNothing) {
  Forms forms(random_logits(700, 9, 30));
  for (Candidates& candidates : forms.make()) {
    const auto all = sorted(forms.logits);
    const auto found = candidates.at_least(2.0f);
    ASSERT_FALSE(found.empty());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].token, all[i].token);
      EXPECT_GE(found[i].logit, 2.0f);
    }
    EXPECT_LT(all[found.size()].logit, 2.0f);
    EXPECT_EQ(pairs_of(candidates.list()), pairs_of(all));
  }
}

TEST(Candidates, WhatIsChangedToNothingIsGone) {
  Forms forms(random_logits(500, 3, 30));
  const auto all = sorted(forms.logits);
  std::vector<Token> gone{all[0].token, all[1].token, Token(100000)};
  std::sort(gone.begin(), gone.end());
  for (Candidates& candidates : forms.make()) {
    candidates.change(gone, [](size_t i, float) { return i == 0 ? kNan : -kInfinity; });
    EXPECT_EQ(candidates.max_logit(), all[2].logit);
    EXPECT_FALSE(candidates.logit_of(all[0].token));
    EXPECT_EQ(candidates.list().size(), all.size() - 2);
  }
}

TEST(Candidates, NanAndInfinities) {
  const std::vector<float> logits{kNan, 2, -kInfinity, kInfinity, kNan, -5};
  Candidates candidates;
  candidates.reset(logits);
  EXPECT_FALSE(candidates.empty());
  EXPECT_EQ(candidates.max_logit(), FLT_MAX);
  EXPECT_EQ(pairs_of(candidates.list()), (Pairs{{1, 2}, {3, FLT_MAX}, {5, -5}}));
  EXPECT_TRUE(std::isfinite(candidates.exp_sums().total));
  const std::vector<float> none{kNan, -kInfinity};
  candidates.reset(none);
  EXPECT_TRUE(candidates.empty());
  candidates.reset({});
  EXPECT_TRUE(candidates.empty());
  const std::vector<uint64_t> words{0};
  const TokenMask mask = words;
  candidates.reset(logits, &mask);
  EXPECT_TRUE(candidates.empty());
  const TokenMask no_words;
  candidates.reset(logits, &no_words);
  EXPECT_TRUE(candidates.empty());
}

TEST(Candidates, DividingKeepsTheMaximumTrue) {
  const std::vector<float> logits{2, -4, 8};
  Candidates candidates;
  candidates.reset(logits);
  EXPECT_EQ(candidates.max_logit(), 8);
  candidates.divide(2);
  EXPECT_EQ(candidates.max_logit(), 4);
  candidates.divide(1e-45f);
  EXPECT_EQ(candidates.max_logit(), FLT_MAX);
  ASSERT_EQ(candidates.list().size(), 3u);
  for (const Candidate& c : candidates.list()) EXPECT_TRUE(std::isfinite(c.logit));
}

TEST(Likeliest, LowestIdOfEqualsAndNeverNan) {
  EXPECT_EQ(likeliest(std::vector<float>{1, 5, 5, 2}), Token(1));
  EXPECT_EQ(likeliest(std::vector<float>{kNan, -3, kNan, -3}), Token(1));
  EXPECT_EQ(likeliest(std::vector<float>{0, kInfinity, kInfinity}), Token(1));
  EXPECT_EQ(likeliest(std::vector<float>{-0.0f, 0.0f}), Token(0));
  EXPECT_EQ(likeliest(std::vector<float>{kNan, -kInfinity}), Token(-1));
  EXPECT_EQ(likeliest(std::vector<float>{}), Token(-1));
  std::vector<float> row(1000, -1);
  row[700] = row[701] = 3;
  EXPECT_EQ(likeliest(row), Token(700));
}

}  // namespace
}  // namespace cairn::sample::candidates_test
