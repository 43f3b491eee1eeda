// The table itself: sorted, sensible, and free of what it should not hold.
#include "gguf/hyperparameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace cairn::gguf::hyperparameters_test {
namespace {

TEST(Hyperparameters, TheTablesAreSortedAndTheirRangesHoldSomething) {
  const auto counts = count_ranges();
  for (size_t row = 0; row < counts.size(); ++row) {
    if (row > 0) {
      EXPECT_LT(counts[row - 1].name, counts[row].name);
    }
    EXPECT_GE(counts[row].min, 0);
    EXPECT_LT(counts[row].min, counts[row].max) << counts[row].name;
    EXPECT_LE(counts[row].per_layer_min, counts[row].min) << counts[row].name;
  }
  const auto reals = real_ranges();
  for (size_t row = 0; row < reals.size(); ++row) {
    if (row > 0) {
      EXPECT_LT(reals[row - 1].name, reals[row].name);
    }
    EXPECT_TRUE(std::isfinite(reals[row].min) && std::isfinite(reals[row].max));
    EXPECT_LT(reals[row].min, reals[row].max) << reals[row].name;
  }
}

TEST(Hyperparameters, TheLimitsOfTheThreatModel) {
  const auto expect = [](std::string_view name, int32_t min, int32_t max) {
    EXPECT_EQ(count_range(name).min, min) << name;
    EXPECT_EQ(count_range(name).max, max) << name;
  };
  expect("block_count", 1, 1024);
  expect("embedding_length", 1, 65536);
  expect("attention.head_count", 1, 1024);
  expect("attention.head_count_kv", 1, 1024);
  expect("attention.key_length", 1, 1024);
  expect("vocab_size", 1, 1 << 21);
  expect("context_length", 1, 1 << 24);
  expect("expert_count", 0, 4096);
  EXPECT_EQ(count_range("attention.head_count_kv").per_layer_min, 0);
  EXPECT_GT(real_range("rope.freq_base").min, 0.0f);
}

TEST(Hyperparameters, UnknownNamesMayBeAnyCountOrFiniteReal) {
  EXPECT_EQ(count_range("unheard_of").min, 0);
  EXPECT_EQ(count_range("unheard_of").max, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(real_range("unheard_of").min, std::numeric_limits<float>::lowest());
}

}  // namespace
}  // namespace cairn::gguf::hyperparameters_test
