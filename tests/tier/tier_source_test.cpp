// Two engines that share a tier, real or made of faults: what one has computed the other does not
// compute, and whatever the tier does, logits have the bits of an engine that remembers nothing.
#include "tier/tier_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "engine/schedule/scheduler.h"
#include "tests/engine/sampled_job.h"
#include "tests/tier/fake_server.h"
#include "tests/tier/redis_server.h"
#include "tests/tier/shared_engines.h"

namespace cairn::test::tier_source_test {
namespace {

using std::chrono::milliseconds;
using tier::Outcome;

class TierSourceTest : public test::SharedEngines {
 protected:
  // A conversation of a prompt and an answer, which goes to the tier.
  Tokens publish(const tier::TierOptions& tier) {
    const auto first = engine(tier);
    Generator generator(first.get());
    EXPECT_FALSE(read(generator, random_tokens(1, 70)).from_tier);
    answer(generator, random_tokens(2, 13));
    flush(*first);
    const auto tokens = generator.sequence().tokens();
    return {tokens.begin(), tokens.end()};
  }
};

// The bar: the second machine computes no token of what the first one has read and said.
TEST_P(TierSourceTest, AnotherMachineComputesNothing) {
  test::RedisServer redis(folder_.path().string());
  if (!redis.is_running()) GTEST_SKIP() << "no redis-server here";
  const tier::TierOptions tier = options(redis.url());
  const Tokens whole = publish(tier);
  const auto second = engine(tier);
  const PromptReport report = read_rightly(*second, whole);
  EXPECT_EQ(report.computed_tokens, 0);
  EXPECT_TRUE(report.from_tier);
  EXPECT_EQ(report.tier, "fetched");
  // It goes on, and so does the first one's successor.
  Tokens longer = whole;
  {
    Generator generator(second.get());
    longer.push_back(Token(5));
    EXPECT_EQ(read(generator, longer).computed_tokens, 1);
    answer(generator, random_tokens(3, 40));
    const auto tokens = generator.sequence().tokens();
    longer = {tokens.begin(), tokens.end()};
    flush(*second);
  }
  const auto third = engine(tier);
  EXPECT_EQ(read_rightly(*third, longer).computed_tokens, 0);
  // The prompt alone, and one that parts from it.
  const auto fourth = engine(tier);
  EXPECT_EQ(read_rightly(*fourth, random_tokens(1, 70)).computed_tokens, 0);
  Tokens other(whole.begin(), whole.begin() + 60);
  other.resize(100, Token(9));
  const auto fifth = engine(tier);
  EXPECT_LT(read_rightly(*fifth, other).computed_tokens, 100);
}

// What there was no room for was not fetched, though it was found.
TEST_P(TierSourceTest, WhatIsNotTakenIsDropped) {
  test::FakeServer server(folder_.file("tier.sock"));
  const tier::TierOptions tier = options(server.url());
  const Tokens whole = publish(tier);
  EngineOptions small = engine_options();
  small.open_tier = tier::opener_of(tier);
  small.memory_budget = size_t(1) << 20;
  const auto second = load_engine(golden_path(GetParam(), ".gguf"), small);
  ASSERT_NE(second, nullptr);
  const auto look_up = [&] {
    auto found = second->look_up_stored(second->default_selection(), whole, 0);
    while (found->advance() == StoredPrefix::Stage::searching) std::this_thread::yield();
    return found;
  };
  const auto found = look_up();
  ASSERT_EQ(found->stage(), StoredPrefix::Stage::found);
  EXPECT_EQ(found->tier_note(), "fetched");
  // Others that live take all of it.
  std::vector<std::unique_ptr<Generator>> others;
  for (bool has_room = true; has_room;) {
    ASSERT_LT(others.size(), 1000u);
    others.push_back(std::make_unique<Generator>(second.get()));
    has_room = bool(others.back()->read(random_tokens(100 + uint32_t(others.size()), 24), {}));
  }
  found->read();
  EXPECT_EQ(found->stage(), StoredPrefix::Stage::ended);
  EXPECT_FALSE(found->has_brought());
  EXPECT_EQ(found->tier_note(), "dropped");
  others.clear();
  const auto again = look_up();
  again->wait();
  EXPECT_TRUE(again->has_brought());
  EXPECT_EQ(again->tier_note(), "fetched");
}

// What lies in the tier is what lies in the folder, and a seal.
TEST_P(TierSourceTest, RecordsAreThoseOfTheFolder) {
  test::FakeServer server(folder_.file("tier.sock"));
  cache_dir_ = folder_.file("store");
  publish(options(server.url()));
  size_t compared = 0;
  const auto values = server.values();
  for (const auto& file : std::filesystem::recursive_directory_iterator(cache_dir_)) {
    const std::string name = file.path().filename().string();
    const auto value = values.find("c1:r:" + name);
    if (name.size() != 64 || value == values.end()) continue;
    const std::string bytes = test::contents_of(file.path().string());
    EXPECT_EQ(value->second.substr(0, value->second.size() - 32), bytes) << name;
    ++compared;
  }
  EXPECT_GT(compared, 1u);
}

// The k-th command goes wrong, for every k until none does, in each way that there is.
TEST_P(TierSourceTest, EveryCommandMayFailOnce) {
  test::FakeServer server(folder_.file("tier.sock"));
  const Tokens whole = publish(options(server.url()));
  const auto values = server.values();
  for (const test::Fault fault : test::kFaults) {
    // A machine that is busy is as slow as a tier may be: only where that is the fault it counts.
    const bool is_late = fault == test::Fault::slow || fault == test::Fault::silent;
    tier::TierOptions tier = options(server.url());
    if (is_late) {
      tier.times.look_up = milliseconds(60);
      tier.times.first_fetch = milliseconds(300);
    }
    int computed_at_most = 0;
    for (int first = 1;; ++first) {
      for (const auto& [key, value] : values) server.set(key, value);
      server.fail(fault, 1 << 30, "", first);
      const auto second = engine(tier);
      const PromptReport report = read_rightly(*second, whole);
      computed_at_most = std::max(computed_at_most, report.computed_tokens);
      EXPECT_FALSE(report.tier.empty());
      ASSERT_LT(first, 200);
      if (server.failed() == 0) {
        if (!is_late) {
          EXPECT_EQ(report.computed_tokens, 0) << name_of(fault) << " of nothing";
        }
        break;
      }
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << name_of(fault) << " of command " << first;
        return;
      }
    }
    const bool can_be_waited_for = fault == test::Fault::slow;
    if (!can_be_waited_for) {
      EXPECT_GT(computed_at_most, 0) << name_of(fault);
    }
  }
}

// Everything goes wrong, all the time: what the tier says is of no use, and nobody waits for long.
TEST_P(TierSourceTest, EveryCommandMayFailForGood) {
  test::FakeServer server(folder_.file("tier.sock"));
  const Tokens whole = publish(options(server.url()));
  tier::TierOptions tier = options(server.url());
  tier.times.connect = tier.times.look_up = milliseconds(50);
  for (const test::Fault fault : test::kFaults) {
    server.fail(fault);
    const auto second = engine(tier);
    for (int tries = 0; tries < 8; ++tries) {
      second->cache().clear();
      EXPECT_EQ(read_rightly(*second, whole).computed_tokens, int32_t(whole.size()))
          << name_of(fault);
    }
    EXPECT_EQ(outcomes(*second, Outcome::fetched), 0u) << name_of(fault);
    // Evicting leaves nothing that could fail: the pointers have gone.
    const bool is_failure = fault != test::Fault::evict && fault != test::Fault::swap &&
                            fault != test::Fault::flip && fault != test::Fault::half;
    if (!is_failure) continue;
    EXPECT_TRUE(stats(*second).is_open) << name_of(fault);
    EXPECT_GE(outcomes(*second, Outcome::paused), 3u) << name_of(fault);
  }
}

// It answers all questions, and no record comes.
TEST_P(TierSourceTest, ATierThatDeliversNothingIsLeftAlone) {
  test::FakeServer server(folder_.file("tier.sock"));
  const Tokens whole = publish(options(server.url()));
  const auto second = engine(options(server.url()));
  for (int tries = 0; tries < 6; ++tries) {
    server.fail(test::Fault::cut, 1 << 30, "GETEX", 2);  // The first one is the manifest.
    second->cache().clear();
    read_rightly(*second, whole);
  }
  EXPECT_TRUE(stats(*second).is_open);
  EXPECT_EQ(outcomes(*second, Outcome::paused), 1u);
}

// Values that are wrong in every way are refused; after three of them nothing is read for a while.
TEST_P(TierSourceTest, ATierThatLiesIsNotAsked) {
  test::FakeServer server(folder_.file("tier.sock"));
  const Tokens whole = publish(options(server.url()));
  const auto second = engine(options(server.url()));
  server.fail(test::Fault::flip, 1, "GETEX");
  for (int tries = 0; tries < 4; ++tries) {
    second->cache().clear();
    EXPECT_EQ(read_rightly(*second, whole).computed_tokens, int32_t(whole.size()));
  }
  EXPECT_GE(stats(*second).refused_records, 3u);
  EXPECT_TRUE(stats(*second).is_open);
  server.fail(test::Fault::none);
  second->cache().clear();
  EXPECT_EQ(read_rightly(*second, whole).tier, "paused");
}

// Who does not know the key writes nothing that anybody uses: Attack 35.
TEST_P(TierSourceTest, StrangersRecordsAreRefused) {
  test::FakeServer server(folder_.file("tier.sock"));
  const Tokens whole = publish(options(server.url()));
  const auto values = server.values();
  server.clear();
  tier::TierOptions keyed = options(server.url());
  keyed.key_file = folder_.file("key");
  test::write_to(keyed.key_file, std::string(32, 'k'));
  ASSERT_EQ(::chmod(keyed.key_file.c_str(), 0600), 0);
  {
    const auto first = engine(keyed);
    Generator generator(first.get());
    read(generator, random_tokens(5, 70));
    flush(*first);
  }
  // Its names can be seen by whoever reads the tier: "c1:", a number of the key, the kind.
  const std::string beginning = server.values().begin()->first.substr(0, 12);
  EXPECT_NE(beginning.substr(0, 5), "c1:r:");
  for (const auto& [key, value] : values) server.set(beginning + key.substr(3), value);
  const auto second = engine(keyed);
  const PromptReport report = read_rightly(*second, whole);
  EXPECT_EQ(report.computed_tokens, int32_t(whole.size()));
  EXPECT_EQ(report.tier, "damaged");
  EXPECT_GE(stats(*second).refused_records, 1u);
  EXPECT_EQ(outcomes(*second, Outcome::fetched), 0u);
}

// Each record in turn has been evicted: less is fetched, never a hole.
TEST_P(TierSourceTest, EvictedRecordsCostTimeAndNoBit) {
  test::FakeServer server(folder_.file("tier.sock"));
  const Tokens whole = publish(options(server.url()));
  const auto values = server.values();
  int32_t evicted = 0, computed = 0;
  for (const auto& [key, value] : values) {
    if (!key.starts_with("c1:r:")) continue;
    for (const auto& [other, bytes] : values) server.set(other, bytes);
    server.forget(key);
    ++evicted;
    const auto second = engine(options(server.url()));
    computed = std::max(computed, read_rightly(*second, whole).computed_tokens);
    EXPECT_EQ(stats(*second).refused_records, 0u);
  }
  EXPECT_GT(evicted, 1);
  EXPECT_GT(computed, 0);
}

// Killed while records come, and stopped as if the network were gone; back, it is used again.
TEST_P(TierSourceTest, ATierMayDie) {
  auto redis = std::make_unique<test::RedisServer>(folder_.path().string());
  if (!redis->is_running()) GTEST_SKIP() << "no redis-server here";
  tier::TierOptions tier = options(redis->url());
  const Tokens whole = publish(tier);
  tier.times.connect = tier.times.look_up = milliseconds(50);
  const auto second = engine(tier);
  redis->stop();
  for (int tries = 0; tries < 7; ++tries) {
    second->cache().clear();
    EXPECT_EQ(read_rightly(*second, whole).computed_tokens, int32_t(whole.size()));
  }
  EXPECT_TRUE(stats(*second).is_open);
  EXPECT_GE(outcomes(*second, Outcome::paused), 1u);
  redis->kill();
  const auto third = engine(tier);
  const PromptReport report = read_rightly(*third, whole);
  EXPECT_EQ(report.computed_tokens, int32_t(whole.size()));
  EXPECT_EQ(report.tier, "unreachable");
}

INSTANTIATE_TEST_SUITE_P(Kinds, TierSourceTest,
                         ::testing::Values("llama", "gemma3", "llama4", "granitehybrid", "mamba",
                                           "qwen3next"),
                         [](const auto& one) { return std::string(one.param); });

// Of those whose contexts are long enough for leases.
class TierSharingTest : public TierSourceTest {
 protected:
  struct Asked {
    std::vector<std::unique_ptr<Sampled>> results;
    int64_t prompt_rows = 0;
  };
  static void run(Engine& engine, const std::vector<SampledRequest>& requests, Asked& asked) {
    Scheduler scheduler(&engine);
    for (const SampledRequest& request : requests) {
      asked.results.push_back(std::make_unique<Sampled>());
      scheduler.submit(JobId{int64_t(asked.results.size())},
                       std::make_unique<SampledJob>(&engine, request, asked.results.back().get()),
                       {});
    }
    while (scheduler.has_work()) scheduler.step();
    asked.prompt_rows = scheduler.stats().prompt_rows;
    for (const auto& result : asked.results) EXPECT_FALSE(result->error) << result->error->message;
  }
};

// One prefix, which many ask two machines for at the same time.
TEST_P(TierSharingTest, APrefixIsComputedOnceOrTwice) {
  test::FakeServer server(folder_.file("tier.sock"));
  tier::TierOptions tier = options(server.url());
  tier.uses_leases = true;
  tier.publishing = tier::Publishing::second_use;
  const Tokens shared = random_tokens(1, 1060);
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::vector<SampledRequest>> requests(2);
  std::vector<Asked> asked(2);
  constexpr int kClients = 16, kOwn = 9;
  for (uint32_t machine = 0; machine < 2; ++machine) {
    engines.push_back(engine(tier));
    for (uint32_t client = 0; client < kClients; ++client) {
      SampledRequest request{.prompt = shared, .token_count = 2};
      const Tokens own = random_tokens(100 + machine * kClients + client, kOwn);
      request.prompt.insert(request.prompt.end(), own.begin(), own.end());
      requests[machine].push_back(request);
    }
  }
  std::vector<std::thread> threads;
  for (size_t machine = 0; machine < 2; ++machine) {
    threads.emplace_back(
        [&, machine] { run(*engines[machine], requests[machine], asked[machine]); });
  }
  for (std::thread& thread : threads) thread.join();
  const int64_t rows = asked[0].prompt_rows + asked[1].prompt_rows;
  // Pages are whole: of what is fetched less than one is computed.
  EXPECT_LT(rows, 2 * int64_t(shared.size()) + 2 * kClients * (kOwn + 32)) << "at most twice";
  const auto alone = engine({});
  for (size_t machine = 0; machine < 2; ++machine) {
    for (const size_t client : {size_t(0), size_t(kClients) - 1}) {
      Asked expected;
      alone->cache().clear();
      run(*alone, {requests[machine][client]}, expected);
      EXPECT_EQ(asked[machine].results[client]->digest, expected.results[0]->digest);
    }
  }
}

// A machine that has said that it computes a prefix is waited for, and then read.
TEST_P(TierSharingTest, WhoComputesIsWaitedFor) {
  test::FakeServer server(folder_.file("tier.sock"));
  tier::TierOptions tier = options(server.url());
  tier.uses_leases = true;
  tier.publishing = tier::Publishing::second_use;
  const Tokens prompt = random_tokens(1, 1060);
  const auto first = engine(tier), second = engine(tier);
  Generator computing(first.get());
  const auto has_lease = [&] {
    for (const auto& [key, value] : server.values()) {
      if (key.starts_with("c1:l:")) return true;
    }
    return false;
  };
  // Between its lease and its prompt's end the other one asks.
  Lane lane(first.get());
  Result<PromptReport> started = lane.start(prompt);
  ASSERT_TRUE(bool(started));
  ASSERT_TRUE(has_lease());
  PromptReport report;
  std::thread other([&] { report = read_rightly(*second, prompt); });
  const auto is_waited_for = [&] {
    for (const auto& [key, value] : server.values()) {
      if (key.starts_with("c1:w:")) return true;
    }
    return false;
  };
  for (int tries = 0; tries < 1000 && !is_waited_for(); ++tries) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_TRUE(is_waited_for());
  LaneBatch batch(first.get());
  while (lane.wants_rows()) {
    Lane* const lanes[] = {&lane};
    ASSERT_TRUE(bool(batch.step(lanes)));
  }
  flush(*first);
  other.join();
  EXPECT_TRUE(report.from_tier) << report.tier;
  EXPECT_EQ(report.computed_tokens, 0);
  EXPECT_EQ(stats(*second).lease_waits, 1u);
}

// A lease of one that died ends by itself.
TEST_P(TierSharingTest, ALeaseIsAdvice) {
  test::FakeServer server(folder_.file("tier.sock"));
  tier::TierOptions tier = options(server.url());
  tier.uses_leases = true;
  const Tokens prompt = random_tokens(1, 700);
  const auto first = engine(tier);
  Lane lane(first.get());
  ASSERT_TRUE(bool(lane.start(prompt)));
  const auto second = engine(tier);
  const PromptReport report = read_rightly(*second, prompt);
  EXPECT_EQ(report.computed_tokens, 700);
  EXPECT_EQ(stats(*second).lease_waits, 1u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, TierSharingTest, ::testing::Values("mamba", "granitehybrid"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace cairn::test::tier_source_test
