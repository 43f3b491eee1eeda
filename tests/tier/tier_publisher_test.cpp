// What is sent to a tier, and what is not: used twice, kept, never an answer before its turn ended.
#include "tier/tier_publisher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/tier/fake_server.h"
#include "tests/tier/shared_engines.h"

namespace cairn::test::tier_publisher_test {
namespace {

class TierPublisherTest : public test::SharedEngines {
 protected:
  tier::TierOptions options(tier::Publishing publishing) const {
    tier::TierOptions made = SharedEngines::options(server_.url());
    made.publishing = publishing;
    return made;
  }
  size_t records() const {
    size_t count = 0;
    for (const auto& [key, value] : server_.values()) count += size_t(key.starts_with("c1:r:"));
    return count;
  }

  test::FakeServer server_{folder_.file("tier.sock")};
};

TEST_P(TierPublisherTest, WhatWasUsedTwiceIsSent) {
  const auto first = engine(options(tier::Publishing::second_use));
  Tokens turn;
  {
    Generator generator(first.get());
    read(generator, random_tokens(1, 70));
    answer(generator, random_tokens(2, 40));
    flush(*first);
    EXPECT_EQ(records(), 0u) << "nobody has used it twice";
    EXPECT_GE(stats(*first).not_published, 1u);
    const auto tokens = generator.sequence().tokens();
    turn = {tokens.begin(), tokens.end()};
    // The next turn: the prompt and its answer are used for the second time.
    turn.resize(150, Token(7));
    read(generator, turn);
    flush(*first);
    EXPECT_GT(records(), 0u);
    EXPECT_EQ(stats(*first).published, 1u);
  }
  const auto second = engine(options(tier::Publishing::second_use));
  const PromptReport report = read_rightly(*second, turn);
  EXPECT_TRUE(report.from_tier) << report.tier;
  // Up to the last link of the first turn, or to what can be resumed before it.
  EXPECT_LE(report.computed_tokens, 150 - 40);
}

// Before a turn has ended nobody hears of its answer.
TEST_P(TierPublisherTest, NoAnswerBeforeItsTurnHasEnded) {
  const auto first = engine(options(tier::Publishing::all));
  Generator generator(first.get());
  read(generator, random_tokens(1, 64));
  flush(*first);
  const auto of_prompt = server_.values();
  EXPECT_GT(records(), 0u);
  for (const Token token : random_tokens(2, 40)) ASSERT_TRUE(bool(generator.advance(token)));
  flush(*first);
  EXPECT_EQ(server_.values(), of_prompt);
  ASSERT_TRUE(bool(generator.finish_turn()));
  flush(*first);
  EXPECT_GT(server_.values().size(), of_prompt.size());
}

TEST_P(TierPublisherTest, WhoOnlyReadsSendsNothing) {
  const auto first = engine(options(tier::Publishing::nothing));
  for (int times = 0; times < 3; ++times) {
    Generator generator(first.get());
    read(generator, random_tokens(1, 70));
    answer(generator, random_tokens(2, 13));
    flush(*first);
  }
  EXPECT_TRUE(server_.values().empty());
}

TEST_P(TierPublisherTest, WhatSomebodyKeepsIsSentAtOnce) {
  const auto first = engine(options(tier::Publishing::second_use));
  Generator generator(first.get());
  read(generator, random_tokens(1, 70));
  flush(*first);
  EXPECT_EQ(records(), 0u);
  first->offer_kept(generator.sequence());
  flush(*first);
  EXPECT_GT(records(), 0u);
  const auto second = engine(options(tier::Publishing::nothing));
  EXPECT_EQ(read_rightly(*second, random_tokens(1, 70)).computed_tokens, 0);
}

// Whether there is room for more, what was sent tells: it is looked for while it should be there.
TEST_P(TierPublisherTest, WhatWasSentIsLookedFor) {
  tier::TierOptions tier = options(tier::Publishing::second_use);
  tier.uses_leases = false;
  tier.times.kept = std::chrono::seconds(2);
  const auto first = engine(tier);
  server_.fail(test::Fault::evict, 1, "EXISTS");
  const auto read_new = [&](uint32_t seed) {
    Generator generator(first.get());
    read(generator, random_tokens(seed, 70));
    flush(*first);
    first->offer_kept(generator.sequence());
  };
  read_new(1);
  flush(*first);
  EXPECT_GT(records(), 0u);
  EXPECT_EQ(server_.failed(), 0) << "it is new";
  for (uint32_t seed = 2; seed < 200 && server_.failed() == 0; ++seed) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    read_new(seed);
    flush(*first);
  }
  EXPECT_GT(server_.failed(), 0);
  EXPECT_EQ(stats(*first).publish_failures, 0u) << "what is gone is no failure";
}

// What is there is not sent again, and stays for another while.
TEST_P(TierPublisherTest, WhatIsThereIsNotSentAgain) {
  const auto first = engine(options(tier::Publishing::all));
  const auto read_once = [&] {
    Generator generator(first.get());
    read(generator, random_tokens(1, 70));
    flush(*first);
  };
  read_once();
  const auto written = stats(*first).written_bytes;
  const auto before = server_.values();
  read_once();
  read_once();
  EXPECT_EQ(stats(*first).written_bytes, written);
  EXPECT_EQ(stats(*first).published, 3u);
  EXPECT_EQ(server_.values(), before);
}

// A tier that takes nothing costs nothing: answers go on, memory comes back.
TEST_P(TierPublisherTest, EveryWriteMayFail) {
  tier::TierOptions tier = options(tier::Publishing::all);
  tier.times.connect = tier.times.look_up = tier.times.write = std::chrono::milliseconds(50);
  for (const test::Fault fault : test::kFaults) {
    server_.clear();
    server_.fail(fault, 1, "PSETEX PEXPIRE");
    const auto first = engine(tier);
    for (int times = 0; times < 6; ++times) {
      Generator generator(first.get());
      EXPECT_EQ(read(generator, random_tokens(10 + uint32_t(times), 70)).computed_tokens, 70);
      answer(generator, random_tokens(2, 13));
      flush(*first);
    }
    server_.fail(test::Fault::none);
    // Nothing that is there is wrong.
    const auto second = engine(options(tier::Publishing::nothing));
    read_rightly(*second, random_tokens(10, 70));
    EXPECT_EQ(stats(*second).refused_records, 0u) << name_of(fault);
    const bool is_failure = fault != test::Fault::evict && fault != test::Fault::flip &&
                            fault != test::Fault::half && fault != test::Fault::swap;
    if (is_failure) {
      EXPECT_GE(stats(*first).publish_failures, 5u) << name_of(fault);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TierPublisherTest, ::testing::Values("llama", "granitehybrid"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace cairn::test::tier_publisher_test
