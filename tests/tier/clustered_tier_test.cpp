// Engines whose tier is a real Redis cluster: what one has computed the other does not compute,
// while slots move from one server to another, and when a server dies.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/tier/redis_cluster.h"
#include "tests/tier/shared_engines.h"

namespace cairn::test::clustered_tier_test {
namespace {

using std::chrono::milliseconds;
using tier::Outcome;

class ClusteredTierTest : public test::SharedEngines {
 protected:
  void SetUp() override {
    if (!redis_.is_running()) GTEST_SKIP() << "no redis-server here";
    ASSERT_TRUE(redis_.is_joined());
  }

  // A conversation of a prompt and an answer, which goes to the tier.
  Tokens publish(Engine& engine, uint32_t seed) {
    Generator generator(&engine);
    EXPECT_FALSE(read(generator, random_tokens(seed, 170)).from_tier);
    answer(generator, random_tokens(seed + 1, 13));
    flush(engine);
    const auto tokens = generator.sequence().tokens();
    return {tokens.begin(), tokens.end()};
  }
  std::vector<std::string> keys_of(size_t master) const {
    std::istringstream lines(redis_.say(master, "KEYS '*'"));
    std::vector<std::string> keys;
    for (std::string key; lines >> key;) keys.push_back(key);
    return keys;
  }

  test::RedisCluster redis_{folder_.path().string()};
};

TEST_P(ClusteredTierTest, AnotherMachineComputesNothing) {
  const tier::TierOptions tier = options(redis_.url(1));
  const auto first = engine(tier);
  const Tokens whole = publish(*first, 1);
  EXPECT_EQ(stats(*first).publish_failures, 0u);
  EXPECT_EQ(stats(*first).published, 2u);
  size_t servers_used = 0;
  for (size_t master = 0; master < redis_.size(); ++master) {
    servers_used += size_t(!keys_of(master).empty());
  }
  EXPECT_GE(servers_used, 2u);
  const auto second = engine(tier);
  const PromptReport report = read_rightly(*second, whole);
  EXPECT_EQ(report.computed_tokens, 0) << report.tier;
  EXPECT_EQ(report.tier, "fetched");
}

// Each slot that has a record is on its way in turn, while conversations are read and go on.
TEST_P(ClusteredTierTest, SlotsMigrateWhileConversationsMove) {
  const tier::TierOptions tier = options(redis_.url(0));
  const auto first = engine(tier);
  Tokens whole = publish(*first, 1);
  for (const size_t from : {size_t(0), size_t(1), size_t(2)}) {
    const std::vector<std::string> keys = keys_of(from);
    if (keys.empty()) continue;
    const size_t to = (from + 1) % redis_.size();
    const int slot = tier::slot_of(keys.front());
    redis_.begin_migration(slot, from, to);
    const auto second = engine(tier);
    EXPECT_EQ(read_rightly(*second, whole).computed_tokens, 0) << "a slot on its way";
    {
      Generator generator(second.get());
      read(generator, whole);
      answer(generator, random_tokens(10 + uint32_t(from), 9));
      const auto tokens = generator.sequence().tokens();
      whole = {tokens.begin(), tokens.end()};
      flush(*second);
    }
    EXPECT_EQ(stats(*second).publish_failures, 0u);
    redis_.end_migration(slot, from, to);
    const auto third = engine(tier);
    EXPECT_EQ(read_rightly(*third, whole).computed_tokens, 0) << "a slot that has gone";
    // Those who know where it was find it where it is.
    first->cache().clear();
    EXPECT_EQ(read_rightly(*first, whole).computed_tokens, 0);
  }
  EXPECT_EQ(stats(*first).breaker_openings, 0u);
}

// The keys of a server that dies are gone, and nothing else: bits are right, nobody waits for long,
// and what others have is still used and still sent.
TEST_P(ClusteredTierTest, AServerMayDie) {
  tier::TierOptions tier = options(redis_.url(0));
  const auto first = engine(tier);
  std::vector<Tokens> wholes;
  for (uint32_t seed = 1; seed <= 13; seed += 2) wholes.push_back(publish(*first, seed));
  redis_.server(2).kill();
  tier.times.connect = tier.times.look_up = milliseconds(500);
  const auto second = engine(tier);
  size_t from_tier = 0, with_reason = 0;
  for (const Tokens& whole : wholes) {
    const PromptReport report = read_rightly(*second, whole);
    from_tier += size_t(report.from_tier);
    with_reason += size_t(report.tier == "unreachable" || report.tier == "paused");
    EXPECT_TRUE(report.from_tier || report.computed_tokens == int32_t(whole.size()));
  }
  EXPECT_GT(from_tier + with_reason, 0u);
  EXPECT_EQ(stats(*second).refused_records, 0u);
  // What is sent now is found where its keys have servers.
  std::vector<Tokens> more;
  for (uint32_t seed = 101; seed <= 113; seed += 2) more.push_back(publish(*first, seed));
  EXPECT_GT(stats(*first).publish_failures, 0u);
  const auto third = engine(tier);
  size_t saved = 0, all = 0;
  for (const Tokens& whole : more) {
    saved += whole.size() - size_t(read_rightly(*third, whole).computed_tokens);
    all += whole.size();
  }
  EXPECT_GT(saved, 0u);
  EXPECT_LT(saved, all);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ClusteredTierTest, ::testing::Values("llama", "granitehybrid"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace cairn::test::clustered_tier_test
