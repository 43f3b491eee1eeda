// What is worth least of an entry, by hand.
#include "memory/cache/valuation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/memory/toy_bench.h"

namespace cairn::memory::valuation_test {
namespace {

using toy::tokens;
using toy::ToyBench;
using toy::ToyModel;
using Kind = Candidate::Kind;
using Tier = EvictionRank::Tier;

struct Scene {
  explicit Scene(const ToyModel& model, size_t budget_bytes = 1 << 20)
      : bench(model, {.budget_bytes = budget_bytes}),
        entries(bench.memory.get()),
        valuation(bench.memory.get(), &habits, &entries) {}

  Sequence read(int32_t count, std::vector<int32_t> captures = {}) {
    Sequence sequence = bench.memory->new_sequence();
    EXPECT_TRUE(bench.read(sequence, tokens(count), std::move(captures), -1, false));
    return sequence;
  }
  CacheEntry& add(Sequence sequence, double credit = 0) {
    CacheEntry& entry = entries.add(std::move(sequence), {}, false);
    entry.credit = credit;
    valuation.remember_losses(entry);
    return entry;
  }
  size_t block_bytes(int32_t group) const {
    return bench.memory->layout().groups[size_t(group)].block_bytes;
  }

  ToyBench bench;
  RewindHabits habits;
  CacheEntries entries;
  Valuation valuation;
};

TEST(Valuation, AnEndIsWorthItsTokens) {
  Scene scene(ToyModel({{ToyModel::full()}}));
  CacheEntry& entry = scene.add(scene.read(64), 5);
  const std::optional<Candidate> least = scene.valuation.least(entry);
  ASSERT_TRUE(least.has_value());
  EXPECT_EQ(least->kind, Kind::end);
  EXPECT_EQ(least->position, 0);
  EXPECT_EQ(least->rank.tier, Tier::valued);
  const double density = 64 / (2.0 * double(scene.block_bytes(0)));
  EXPECT_NEAR(least->rank.worth, 5 + std::exp2(std::round(std::log2(density))), 1e-12);
}

// Only the tokens behind what another one shares are lost with it, and only their pages are freed.
TEST(Valuation, WhatIsSharedIsNotLost) {
  Scene scene(ToyModel({{ToyModel::full()}}));
  const Sequence parent = scene.read(64);
  Sequence one = parent, other = parent;
  ASSERT_TRUE(scene.bench.read(one, tokens(32, 200)));
  ASSERT_TRUE(scene.bench.read(other, tokens(32, 300)));
  CacheEntry& entry = scene.add(std::move(one));
  EXPECT_EQ(scene.valuation.least(entry)->position, 0);
  scene.add(other);
  EXPECT_EQ(scene.valuation.least(entry)->position, 64);
  // The sequence that needs room counts as well.
  CacheEntry active;
  active.sequence = scene.bench.memory->at(entry.sequence, 70).value();
  scene.valuation.start(&active);
  EXPECT_EQ(scene.valuation.least(entry)->position, 70);
  scene.valuation.start(nullptr);
  EXPECT_EQ(scene.valuation.least(entry)->position, 64);
}

TEST(Valuation, WhatIsHeldElsewhereFreesNothing) {
  Scene scene(ToyModel({{ToyModel::full()}}));
  Sequence held = scene.read(64);
  CacheEntry& entry = scene.add(held);
  EXPECT_FALSE(scene.valuation.least(entry).has_value());
  EXPECT_TRUE(scene.valuation.least(entry, &scene.entries.evictable()).has_value());
  scene.bench.memory->close(held);
  EXPECT_TRUE(scene.valuation.least(entry).has_value());
}

// An anchor that branches share is worth what it is to the one that needs it most, plus that one's
// credit; what very many share, or a pinned one holds, or the active one is to keep, stays.
TEST(Valuation, SharedAnchorsGoFromAllTheirHolders) {
  // States that are far larger than the pages, so that they are what is worth least.
  const ToyModel model({{State::recurrent({4000, 2})}, {ToyModel::full()}});
  Scene scene(model, 8 << 20);
  Sequence parent = scene.read(40, {40});
  const auto fork = [&](const Sequence& other, int32_t index) {
    Sequence sequence = scene.bench.memory->at(other, 40).value();
    EXPECT_TRUE(scene.bench.read(sequence, tokens(20, 100 * index), {}, -1, false));
    scene.bench.memory->suspend(sequence);
    return sequence;
  };
  const auto shared = [&](CacheEntry& entry) {
    const std::optional<Candidate> least = scene.valuation.least(entry);
    return least && least->kind == Kind::anchor ? least->holders.size() : 0;
  };
  CacheEntry& one = scene.add(fork(parent, 1));
  EXPECT_EQ(shared(one), 0u) << "The parent holds it.";
  CacheEntry& two = scene.add(fork(parent, 2), 0.001);
  scene.bench.memory->close(parent);
  ASSERT_EQ(shared(one), 2u);
  EXPECT_EQ(shared(two), 2u);
  const Candidate least = *scene.valuation.least(one);
  EXPECT_EQ(least.position, 40);
  EXPECT_NEAR(least.rank.worth,
              0.001 + two.anchor_losses[0] /
                          double(scene.block_bytes(scene.bench.memory->layout().recurrent_group)),
              1e-12);
  {
    CacheEntry active;
    active.sequence = fork(one.sequence, 3);
    scene.entries.enter(active);
    scene.valuation.remember_losses(active);
    scene.valuation.start(&active);
    EXPECT_EQ(shared(one), 3u);
    scene.valuation.spares_active = true;
    EXPECT_EQ(shared(one), 0u);
    scene.valuation.start(nullptr);
    scene.entries.leave(active);
  }
  two.is_pinned = true;
  EXPECT_EQ(shared(one), 0u);
  two.is_pinned = false;
  for (size_t count = 2; count <= Valuation::kHoldersMax; ++count) {
    EXPECT_EQ(shared(one), count);
    scene.add(fork(one.sequence, int32_t(count) + 1));
  }
  EXPECT_EQ(shared(one), 0u);
}

TEST(Valuation, OnlyEnds) {
  Scene scene(ToyModel({{State::recurrent({1000, 2})}, {ToyModel::full()}}));
  CacheEntry& entry = scene.add(scene.read(200, {100, 150}));
  EXPECT_EQ(scene.valuation.least(entry)->kind, Kind::anchor);
  scene.valuation.only_ends = true;
  EXPECT_EQ(scene.valuation.least(entry)->kind, Kind::end);
}

TEST(Valuation, AStateThatTheLogReplaysGoesFirst) {
  Scene scene(ToyModel({{ToyModel::recurrent()}}));
  CacheEntry& entry = scene.add(scene.read(5), 7);
  const std::optional<Candidate> least = scene.valuation.least(entry);
  ASSERT_TRUE(least.has_value());
  EXPECT_EQ(least->kind, Kind::live_state);
  EXPECT_EQ(least->rank.tier, Tier::live_state);
  CacheEntry other;
  other.sequence = entry.sequence;
  EXPECT_FALSE(scene.bench.memory->can_suspend(entry.sequence)) << "The copy holds the state.";
}

TEST(Valuation, WindowsThatNobodyIsExpectedIn) {
  Scene scene(ToyModel({{ToyModel::window(32)}}));
  CacheEntry& entry = scene.add(scene.read(320));
  // All but the last page or two, for which the end is worth more.
  const std::optional<Candidate> least = scene.valuation.least(entry, &scene.entries.evictable());
  ASSERT_TRUE(least.has_value());
  EXPECT_EQ(least->kind, Kind::window);
  EXPECT_EQ(scene.valuation.least(entry)->rank, least->rank);
}

}  // namespace
}  // namespace cairn::memory::valuation_test
