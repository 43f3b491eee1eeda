// The greedy search, on harms that are known: what it finds, how much it measures, and what it does
// where layers cannot be skipped.
#include "measure/skip_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace cairn::measure::skip_search_test {
namespace {

// Harms add up; a pair of layers may do more together.
struct Model {
  std::vector<double> harms;
  std::vector<int32_t> needed;  // Cannot be skipped.
  std::set<std::vector<int32_t>> measured;

  Result<SkipScore> measure(const std::vector<int32_t>& layers) {
    EXPECT_TRUE(std::is_sorted(layers.begin(), layers.end()));
    EXPECT_TRUE(measured.insert(layers).second) << "measured twice";
    double harm = 0;
    for (const int32_t layer : layers) {
      if (std::find(needed.begin(), needed.end(), layer) != needed.end()) {
        return fail(ErrorCode::unsupported, "layer {}: needed", layer);
      }
      harm += harms[size_t(layer)];
    }
    const std::set<int32_t> set(layers.begin(), layers.end());
    if (set.contains(1) && set.contains(2)) harm += 10;
    return SkipScore{harm, 1 / (1 + harm)};
  }

  Result<std::vector<SkipSet>> search(SkipSearch search) {
    search.layer_count = int32_t(harms.size());
    search.measure = [this](const std::vector<int32_t>& layers) { return measure(layers); };
    return search_skips(search);
  }
};

std::vector<std::vector<int32_t>> layers_of(const std::vector<SkipSet>& sets) {
  std::vector<std::vector<int32_t>> layers;
  for (const SkipSet& set : sets) layers.push_back(set.layers);
  return layers;
}

TEST(SkipSearch, TakesTheLayerThatDoesTheLeastHarmBesideTheOthers) {
  Model model{.harms = {9, 1, 2, 5, 3, 9}, .needed = {}, .measured = {}};
  int32_t told = 0;
  auto found =
      model.search({.skipped_max = 3, .try_count = 6, .on_found = [&](const SkipSet&) { ++told; }});
  ASSERT_TRUE(bool(found));
  using Sets = std::vector<std::vector<int32_t>>;
  EXPECT_EQ(layers_of((*found)), (Sets{{1}, {1, 4}, {1, 3, 4}}));
  EXPECT_DOUBLE_EQ((*found)[2].score.divergence, 9);
  EXPECT_EQ(told, 3);
  EXPECT_EQ(model.measured.size(), 6u + 5 + 4);
}

TEST(SkipSearch, TriesTheMostPromisingFirst) {
  Model model{.harms = {9, 1, 8, 5, 3, 7}, .needed = {}, .measured = {}};
  int64_t last = 0, total = 0;
  auto found = model.search(
      {.skipped_max = 3, .try_count = 2, .on_progress = [&](int64_t done, int64_t all) {
         EXPECT_EQ(done, last + 1);
         last = done;
         total = all;
         return true;
       }});
  ASSERT_TRUE(bool(found));
  EXPECT_EQ((*found).back().layers, (std::vector<int32_t>{1, 3, 4}));
  EXPECT_EQ(model.measured.size(), 6u + 2 + 2);
  EXPECT_EQ(last, 10);
  EXPECT_EQ(total, 10);
  EXPECT_FALSE(model.measured.contains({0, 1})) << "the worst is not tried again";
}

TEST(SkipSearch, LeavesOutWhatIsNeeded) {
  Model model{.harms = {1, 2, 3}, .needed = {0}, .measured = {}};
  auto found = model.search({.skipped_max = 2});
  ASSERT_TRUE(bool(found));
  EXPECT_EQ((*found)[0].layers, (std::vector<int32_t>{1}));
  Model nothing{.harms = {1, 2}, .needed = {0, 1}, .measured = {}};
  found = nothing.search({.skipped_max = 1});
  ASSERT_FALSE(bool(found));
  EXPECT_EQ(found.error().message, "layer 0: needed");
}

TEST(SkipSearch, KeepsWhatItHasWhenItIsEnded) {
  Model model{.harms = {3, 1, 5, 4}, .needed = {}, .measured = {}};
  auto found = model.search(
      {.skipped_max = 3, .on_progress = [](int64_t done, int64_t) { return done < 6; }});
  ASSERT_TRUE(bool(found));
  EXPECT_EQ(layers_of((*found)), (std::vector<std::vector<int32_t>>{{1}}));
}

TEST(SkipSearch, OtherErrorsEndIt) {
  const SkipSearch search{.layer_count = 3,
                          .skipped_max = 2,
                          .measure = [](const std::vector<int32_t>&) -> Result<SkipScore> {
                            return fail(ErrorCode::memory_full, "no room");
                          }};
  auto found = search_skips(search);
  ASSERT_FALSE(bool(found));
  EXPECT_EQ(found.error().code, ErrorCode::memory_full);
}

}  // namespace
}  // namespace cairn::measure::skip_search_test
