// A simulated cluster of fifty nodes keeps what it promises, whatever goes wrong and with any seed;
// and each rule of it has a reason.
#include <gtest/gtest.h>

#include "bench/simulation/cluster.h"
#include "tests/sanitized.h"

namespace cairn::test::cluster_simulation_test {
namespace {

using bench::ClusterFigures;
using bench::ClusterOptions;
using bench::Policy;

constexpr double kSeconds = 900;

// The figures of the public trace: prompts of 6,909 tokens at p50, 12,035 on average, 27,367 at
// p90; 37 % reused, 76 % of all blocks used once; gaps of 114 s, 324 and 627; bursts.
TEST(ClusterSimulation, TrafficHasTheShapeOfThePublicTrace) {
  const bench::TrafficFigures figures = bench::figures_of(bench::make_traffic({.seed = 1}));
  EXPECT_NEAR(figures.blocks_mean, 12035.0 / 512, 3);
  EXPECT_NEAR(figures.blocks_p50, 6909.0 / 512, 2.5);
  EXPECT_NEAR(figures.blocks_p90, 27367.0 / 512, 8);
  EXPECT_NEAR(figures.reuse, 0.374, 0.04);
  EXPECT_NEAR(figures.used_once, 0.76, 0.08);
  EXPECT_NEAR(figures.gap_p50, 114, 15);
  EXPECT_NEAR(figures.gap_p80, 324, 60);
  EXPECT_NEAR(figures.burst, 7.9, 2);
}

// Of one machine that forgets nothing, what is reusable is what somebody has asked before.
TEST(ClusterSimulation, OneNodeThatForgetsNothingReusesAllThatCanBe) {
  const auto asks = bench::make_traffic({.seed = 2, .nodes = 4, .seconds = kSeconds});
  const ClusterFigures figures = bench::simulate(
      asks, {.nodes = 1, .has_tier = false, .node_blocks = 1 << 20, .load = 0.3, .seed = 2});
  EXPECT_NEAR(figures.local_reuse, figures.ideal_reuse, 1e-9);
  EXPECT_EQ(figures.answered, figures.asks);
}

TEST(ClusterSimulation, KeepsWhatItPromisesWhateverGoesWrong) {
  double reuse = 0, calm_reuse = 0;
  int64_t refused = 0;
  constexpr uint64_t kSeeds = test::kIsSlow ? 1 : 3;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto asks = bench::make_traffic({.seed = seed, .nodes = 50, .seconds = kSeconds});
    ClusterOptions options{.nodes = 50, .seed = seed, .faults = bench::all_faults(kSeconds)};
    options.watched_from = options.faults.back().until + 60;
    options.watched_until = kSeconds;
    const ClusterFigures figures = bench::simulate(asks, options);
    EXPECT_EQ(figures.wrong, 0) << "V1";
    EXPECT_EQ(figures.answered + figures.failed, figures.asks) << "V2";
    EXPECT_GT(figures.failed, 0);
    EXPECT_LT(figures.failed, figures.asks / 50);
    EXPECT_TRUE(figures.is_within_budget) << "V3";
    EXPECT_GT(figures.unreachable, 0);
    EXPECT_GT(figures.paused, 0) << "breakers opened while the tier was down";
    EXPECT_LE(figures.largest_shard, 1.3);
    if (seed == 1) {
      EXPECT_EQ(bench::simulate(asks, options).events, figures.events) << "V5";
    }
    options.faults.clear();
    const ClusterFigures calm = bench::simulate(asks, options);
    EXPECT_EQ(calm.failed + calm.refused + calm.unreachable + calm.paused, 0);
    EXPECT_NE(calm.events, figures.events);
    reuse += figures.watched_reuse;
    calm_reuse += calm.watched_reuse;
    refused += figures.refused;
  }
  EXPECT_GT(refused, 0) << "what was forged or damaged was read";
  EXPECT_GT(calm_reuse, double(kSeeds) / 3);
  EXPECT_GT(reuse, 0.9 * calm_reuse) << "V4, of few nodes: the bar of many is 0.95";
}

// So do nodes that lend each other what they have, with a tier that has the directory alone.
TEST(ClusterSimulation, NodesThatLendKeepWhatTheyPromise) {
  const auto asks = bench::make_traffic({.seed = 1, .nodes = 50, .seconds = kSeconds});
  ClusterOptions options{.nodes = 50,
                         .publishing = tier::Publishing::nothing,
                         .has_peers = true,
                         .faults = bench::all_faults(kSeconds)};
  options.watched_from = options.faults.back().until + 60;
  options.watched_until = kSeconds;
  const ClusterFigures figures = bench::simulate(asks, options);
  EXPECT_EQ(figures.wrong, 0) << "V1";
  EXPECT_EQ(figures.answered + figures.failed, figures.asks) << "V2";
  EXPECT_TRUE(figures.is_within_budget) << "V3";
  EXPECT_GT(figures.borrowed, figures.asks / 50);
  EXPECT_GT(figures.lenders_gone, 0) << "somebody who was killed was asked";
  EXPECT_EQ(figures.written_bytes, 0);
  EXPECT_GT(figures.directory_bytes, 0);
  EXPECT_EQ(bench::simulate(asks, options).events, figures.events) << "V5";
  options.faults.clear();
  const ClusterFigures calm = bench::simulate(asks, options);
  EXPECT_EQ(calm.failed + calm.refused + calm.unreachable + calm.lenders_gone, 0);
  EXPECT_GT(figures.watched_reuse, 0.9 * calm.watched_reuse) << "V4";
  // More than without, and more than by a tier with room for a quarter of what they remember.
  const auto reuse = [&](tier::Publishing publishing) {
    return bench::simulate(asks, {.nodes = 50, .publishing = publishing}).reuse;
  };
  EXPECT_GT(calm.reuse, 1.1 * reuse(tier::Publishing::nothing));
  EXPECT_GT(calm.reuse, reuse(tier::Publishing::second_use));
  EXPECT_GT(calm.reuse, 0.9 * calm.ideal_reuse);
}

// Another seed, other events.
TEST(ClusterSimulation, SeedsDiffer) {
  const auto asks = bench::make_traffic({.seed = 1, .nodes = 8, .seconds = 300});
  const auto other = bench::make_traffic({.seed = 2, .nodes = 8, .seconds = 300});
  EXPECT_NE(bench::simulate(asks, {.nodes = 8}).events,
            bench::simulate(other, {.nodes = 8}).events);
}

// A tier gives back what a router without affinity loses; a router with it waits less.
TEST(ClusterSimulation, ATierAndARouterHelp) {
  const auto asks = bench::make_traffic({.seed = 1, .nodes = 16, .seconds = kSeconds});
  const auto reuse = [&](Policy policy, bool has_tier) {
    return bench::simulate(asks, {.nodes = 16, .policy = policy, .has_tier = has_tier});
  };
  const ClusterFigures alone = reuse(Policy::random, false), shared = reuse(Policy::random, true);
  EXPECT_LT(alone.reuse, 0.5 * alone.ideal_reuse);
  EXPECT_GT(shared.reuse, alone.reuse * 1.2);
  const ClusterFigures routed = reuse(Policy::cost, true);
  EXPECT_GT(routed.reuse, 1.5 * shared.reuse);
  EXPECT_LT(routed.wait_p99, shared.wait_p99);
}

}  // namespace
}  // namespace cairn::test::cluster_simulation_test
