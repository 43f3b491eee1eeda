// Choices one by one; and sixteen simulated nodes under bursts of conversations: how much of what
// was read is read again, and how long prompts wait, beside chance and a hash.
#include "route/policy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random_stream.h"
#include "tests/sanitized.h"

namespace cairn::route::policy_test {
namespace {

// A conversation's prompt: blocks of a system prompt, then its own.
PromptKeys prompt(uint64_t conversation, size_t block_count, uint64_t system = 0,
                  size_t system_blocks = 0) {
  PromptKeys keys;
  for (size_t block = 0; block < system_blocks + block_count; ++block) {
    const bool is_system = block < system_blocks;
    keys.prefixes.push_back(
        {weight_of(weight_of(is_system ? system : conversation, is_system ? 5 : 7), block + 1),
         (block + 1) * kBlockBytes});
  }
  keys.affinity = weight_of(conversation, 11);
  return keys;
}

Policy with_nodes(int32_t count) {
  Policy policy({.entry_count = size_t(1) << 16});
  for (int32_t node = 0; node < count; ++node) policy.add_node("node" + std::to_string(node));
  return policy;
}

void tell(Policy& policy, int32_t node, int32_t waiting, int32_t running) {
  policy.asked(node);
  policy.told(node, waiting, running);
}

TEST(Policy, AConversationReturns) {
  Policy policy = with_nodes(8);
  for (uint64_t conversation = 1; conversation < 40; ++conversation) {
    const Decision first = policy.choose(prompt(conversation, 4), 0);
    ASSERT_GE(first.node, 0);
    EXPECT_EQ(first.known_bytes, 0u);
    policy.ended(policy.sent(prompt(conversation, 4), first, 0), std::nullopt, true);
    const Decision second = policy.choose(prompt(conversation, 6), 1000);
    EXPECT_EQ(second.node, first.node);
    EXPECT_EQ(second.why, Why::prefix);
    EXPECT_EQ(second.known_bytes, 4 * kBlockBytes);
    EXPECT_EQ(second.prompt_bytes, 6 * kBlockBytes);
  }
}

TEST(Policy, ALostTableIsAHash) {
  Policy first = with_nodes(8), second = with_nodes(8);
  int32_t same = 0;
  std::map<int32_t, int32_t> counts;
  for (uint64_t conversation = 1; conversation <= 800; ++conversation) {
    const int32_t node = first.choose(prompt(conversation, 4), 0).node;
    same += node == second.choose(prompt(conversation, 4), 0).node ? 1 : 0;
    ++counts[node];
  }
  EXPECT_EQ(same, 800);
  for (const auto& [node, count] : counts) {
    EXPECT_GT(count, 60) << node;
    EXPECT_LT(count, 140) << node;
  }
  // Who is gone leaves the others where they are.
  second.set_up(3, false);
  int32_t moved = 0;
  for (uint64_t conversation = 1; conversation <= 800; ++conversation) {
    const int32_t before = first.choose(prompt(conversation, 4), 0).node;
    const int32_t after = second.choose(prompt(conversation, 4), 0).node;
    EXPECT_NE(after, 3);
    moved += before != after ? 1 : 0;
  }
  EXPECT_EQ(moved, counts[3]);
}

TEST(Policy, ReadingIsWeighedAgainstWaiting) {
  Policy policy = with_nodes(2);
  // Both read a block in 128 ms, and a prompt takes 512 on average.
  for (int32_t node = 0; node < 2; ++node) {
    const PromptKeys keys = prompt(900 + uint64_t(node), 4);
    const uint64_t request = policy.sent(keys, {.node = node}, 0);
    policy.ended(request, ReplyFigures{.computed_tokens = 1000, .prompt_ms = 512}, true);
  }
  const PromptKeys long_one = prompt(1, 10);
  policy.ended(policy.sent(long_one, {.node = 0}, 0), std::nullopt, true);
  EXPECT_EQ(policy.choose(long_one, 0).node, 0);
  tell(policy, 0, 2, 0);  // Two prompts wait: a second, and reading it anew takes 1.28.
  EXPECT_EQ(policy.choose(long_one, 0).node, 0);
  tell(policy, 0, 4, 0);
  const Decision other = policy.choose(long_one, 0);
  EXPECT_EQ(other.node, 1);
  EXPECT_NEAR(other.cost_ms, 1280, 1);
  // What this router has sent counts at once, and what was read of it does not.
  tell(policy, 0, 0, 0);
  const PromptKeys heavy = prompt(2, 20);
  const uint64_t request =
      policy.sent(heavy, {.node = 0, .prompt_bytes = heavy.bytes(), .cost_ms = 2560}, 1000);
  EXPECT_EQ(policy.choose(long_one, 1000).node, 1);
  EXPECT_NEAR(policy.view(0, 2000).queue_ms, 1560, 1);
  EXPECT_EQ(policy.choose(long_one, 3000).node, 0);
  policy.begun(request, 3000);
  EXPECT_EQ(policy.view(0, 3000).outstanding, 1);
  EXPECT_NEAR(policy.view(0, 3000).queue_ms, 128, 1);
  policy.ended(request, std::nullopt, true);
  EXPECT_EQ(policy.view(0, 3000).queue_ms, 0);
}

// Whoever was slow once gets another chance, but not while it still is.
TEST(Policy, ASlowNodeIsTriedAgain) {
  Policy policy = with_nodes(2);
  const auto answered = [&](uint64_t conversation, int32_t node, double now, double prompt_ms) {
    const PromptKeys keys = prompt(conversation, 4);
    policy.ended(policy.sent(keys, {.node = node}, now),
                 ReplyFigures{.computed_tokens = 1000, .prompt_ms = prompt_ms}, true);
  };
  answered(1, 0, 0, 4000);
  answered(2, 1, 0, 400);
  const auto chosen = [&](uint64_t first, double now) {
    std::set<int32_t> nodes;
    for (uint64_t conversation = first; conversation < first + 20; ++conversation) {
      nodes.insert(policy.choose(prompt(conversation, 4), now).node);
    }
    return nodes;
  };
  EXPECT_EQ(chosen(100, 1000), std::set<int32_t>{1});
  EXPECT_EQ(chosen(200, 100000), (std::set<int32_t>{0, 1}));
  answered(3, 0, 100000, 4000);
  EXPECT_EQ(chosen(300, 101000), std::set<int32_t>{1});
}

// An answer that is made delays others by a tenth of what answers take there.
TEST(Policy, AnswersDelayEachOther) {
  Policy policy = with_nodes(2);
  const PromptKeys keys = prompt(1, 4);
  const uint64_t request = policy.sent(keys, {.node = 0}, 0);
  policy.ended(request, ReplyFigures{.computed_tokens = 1000, .prompt_ms = 512, .answer_ms = 4000},
               true);
  EXPECT_EQ(policy.choose(keys, 0).node, 0);
  tell(policy, 0, 0, 2);
  EXPECT_NEAR(policy.view(0, 0).queue_ms, 800, 1);
  EXPECT_EQ(policy.choose(keys, 0).node, 1);
  tell(policy, 1, 0, 2);  // Not measured there: as at the others.
  EXPECT_NEAR(policy.view(1, 0).queue_ms, 800, 1);
  EXPECT_EQ(policy.choose(keys, 0).node, 0);
}

// A node counts its requests at some moment between the question and the answer: one of this router
// that begins or ends meanwhile is no other's.
TEST(Policy, OwnRequestsAreNobodyElsesHoweverTheyFall) {
  const PromptKeys keys = prompt(1, 4);
  const auto told_beside = [&](bool begins_before, bool ends_before, int32_t running) {
    Policy policy = with_nodes(2);
    policy.ended(policy.sent(keys, {.node = 0}, 0),
                 ReplyFigures{.computed_tokens = 1000, .prompt_ms = 512, .answer_ms = 4000}, true);
    if (!begins_before) policy.asked(0);
    const uint64_t request = policy.sent(keys, {.node = 0}, 0);
    policy.begun(request, 0);
    if (begins_before) policy.asked(0);
    if (ends_before) policy.ended(request, std::nullopt, true);
    policy.told(0, 0, running);
    if (!ends_before) policy.ended(request, std::nullopt, true);
    return policy.view(0, 0).queue_ms;
  };
  for (const bool begins_before : {false, true}) {
    for (const bool ends_before : {false, true}) {
      SCOPED_TRACE(fmt::format("begins before: {}, ends before: {}", begins_before, ends_before));
      EXPECT_EQ(told_beside(begins_before, ends_before, 0), 0);
      EXPECT_EQ(told_beside(begins_before, ends_before, 1), 0);
      EXPECT_NEAR(told_beside(begins_before, ends_before, 2), 400, 1) << "another's is not seen";
    }
  }
}

TEST(Policy, WhatFailedWasNotRead) {
  Policy policy = with_nodes(4);
  const PromptKeys keys = prompt(1, 6);
  policy.ended(policy.sent(prompt(1, 2), {.node = 2}, 0), std::nullopt, true);
  const Decision decision = policy.choose(keys, 0);
  EXPECT_EQ(decision.node, 2);
  policy.ended(policy.sent(keys, decision, 0), std::nullopt, false);
  EXPECT_EQ(policy.choose(keys, 0).known_bytes, 2 * kBlockBytes);
  const int32_t avoid[] = {2};
  EXPECT_NE(policy.choose(keys, 0, avoid).node, 2);
  const int32_t all[] = {0, 1, 2, 3};
  EXPECT_EQ(policy.choose(keys, 0, all).node, -1);
}

TEST(Policy, ANodeThatForgetsIsTrustedLess) {
  Policy policy = with_nodes(2);
  for (int times = 0; times < 40; ++times) {
    const PromptKeys keys = prompt(uint64_t(100 + times), 8);
    Decision decision{.node = 0, .known_bytes = keys.bytes(), .prompt_bytes = keys.bytes()};
    policy.ended(policy.sent(keys, decision, 0),
                 ReplyFigures{.reused_tokens = 100, .computed_tokens = 900, .prompt_ms = 100},
                 true);
  }
  EXPECT_NEAR(policy.view(0, 0).trust, 0.1, 0.01);
  EXPECT_EQ(policy.view(1, 0).trust, 1);
}

TEST(Policy, OwnersAreAsked) {
  Policy policy = with_nodes(6);
  PromptKeys named = prompt(1, 3);
  named.owned = "mine";
  policy.own("mine", 4);
  tell(policy, 4, 100, 100);
  EXPECT_EQ(policy.choose(named, 0).node, 4);
  EXPECT_EQ(policy.choose(named, 0).why, Why::owner);
  // Before anybody has told: by the name alone, for every router.
  named.owned = "other";
  const int32_t home = policy.choose(named, 0).node;
  EXPECT_EQ(with_nodes(6).choose(named, 0).node, home);
  tell(policy, home, 100, 100);
  EXPECT_EQ(policy.choose(named, 0).node, home);
  for (int count = 0; count < 70'000; ++count) policy.own(std::to_string(count), 1);
  named.owned = "mine";
  EXPECT_NE(policy.choose(named, 0).why, Why::owner);
}

// A session that is used is not older than replies that nobody asks for again.
TEST(Policy, OwnersAreKeptWhileTheyAreAskedFor) {
  Policy policy = with_nodes(6);
  PromptKeys named = prompt(1, 3);
  named.owned = "mine";
  policy.own("mine", 4);
  for (int count = 0; count < 140'000; ++count) {
    policy.own(std::to_string(count), 1);
    if (count % 10'000 != 0) continue;
    EXPECT_EQ(policy.choose(named, 0).why, Why::owner) << count;
  }
  EXPECT_EQ(policy.choose(named, 0).node, 4);
  named.owned = "0";
  EXPECT_NE(policy.choose(named, 0).why, Why::owner);
}

// As many as nodes may say, on more of them than a number of 32 bits can count.
TEST(Policy, SharesAreOfAnyNumberOfRequests) {
  constexpr int32_t kNodes = 1500, kMost = 1'000'000;
  Policy policy = with_nodes(kNodes);
  const PromptKeys keys = prompt(1, 0);
  const int32_t home = policy.choose(keys, 0).node;
  for (int32_t node = 0; node < kNodes; ++node) tell(policy, node, kMost, kMost / 2);
  EXPECT_EQ(policy.choose(keys, 0).node, home);
  tell(policy, home, kMost, kMost);  // More than its share.
  EXPECT_NE(policy.choose(keys, 0).node, home);
}

TEST(Policy, NodesHaveALimit) {
  Policy policy({.entry_count = 1024, .table_bytes_max = 1 << 16});
  for (int32_t node = 0; node < Policy::kNodesMax; ++node) {
    ASSERT_TRUE(policy.has_room_for(std::to_string(node)));
    ASSERT_EQ(policy.add_node(std::to_string(node)), node);
  }
  EXPECT_FALSE(policy.has_room_for("more"));
  EXPECT_TRUE(policy.has_room_for("7"));
  EXPECT_EQ(policy.add_node("7"), 7);
}

TEST(Policy, DrainedNodesGetNothingNew) {
  Policy policy = with_nodes(2);
  const PromptKeys keys = prompt(1, 4);
  policy.ended(policy.sent(keys, {.node = 1}, 0), std::nullopt, true);
  policy.drain_node(1);
  EXPECT_EQ(policy.choose(keys, 0).node, 0);
  EXPECT_EQ(policy.add_node("node1"), 1);
  EXPECT_EQ(policy.choose(keys, 0).node, 1);
}

// The table has room for what all nodes keep, within its bytes.
TEST(Policy, MoreNodesHaveALargerTable) {
  Policy policy({.entry_count = 1024,
                 .entries_of_node = 512,
                 .table_bytes_max = 5000 * PrefixTable::entry_bytes()});
  EXPECT_EQ(policy.table().entry_count(), 1024u);
  const PromptKeys keys = prompt(1, 4);
  policy.add_node("node0");
  policy.ended(policy.sent(keys, {.node = 0}, 0), std::nullopt, true);
  policy.add_node("node1");
  EXPECT_EQ(policy.table().entry_count(), 1024u);
  policy.add_node("node2");
  EXPECT_EQ(policy.table().entry_count(), 2048u);
  policy.add_node("node2");
  policy.add_node("node3");
  EXPECT_EQ(policy.table().entry_count(), 2048u) << "one of the same name is the same one";
  EXPECT_EQ(policy.choose(keys, 0).known_bytes, keys.bytes()) << "what was known is known still";
  for (int node = 4; node < 100; ++node) policy.add_node("node" + std::to_string(node));
  EXPECT_EQ(policy.table().entry_count(), 4096u) << "no more than fit in its bytes";
  EXPECT_EQ(Policy({.entry_count = 1 << 16, .table_bytes_max = 1 << 20}).table().entry_count(),
            size_t(1) << 15);
}

// A thousand nodes, each with conversations that it keeps in mind: all of them return to where they
// were read, which a table of one size for all fleets forgets.
TEST(Policy, AThousandNodesConversationsReturn) {
  Policy policy;
  for (int node = 0; node < 1000; ++node) policy.add_node("node" + std::to_string(node));
  constexpr uint64_t kConversations = test::kIsSlow ? 5'000 : 25'000;
  const auto ask = [&](uint64_t conversation) {
    const PromptKeys keys = prompt(conversation, 50);
    const Decision decision = policy.choose(keys, double(conversation));
    const uint64_t request = policy.sent(keys, decision, double(conversation));
    policy.begun(request, double(conversation));
    policy.ended(request, std::nullopt, true);
    return decision;
  };
  for (uint64_t conversation = 1; conversation <= kConversations; ++conversation) {
    ask(conversation);
  }
  uint64_t known = 0;
  for (uint64_t conversation = 1; conversation <= kConversations; ++conversation) {
    const Decision decision = ask(conversation);
    known += uint64_t(decision.known_bytes == decision.prompt_bytes);
  }
  EXPECT_GT(known, kConversations * 95 / 100);
}

// ---------------------------------------------------------------------------------------------
// Nodes read one prompt after the other, 50 microseconds a byte of what they have not read.

constexpr int32_t kNodes = 16;
constexpr double kMsPerByte = 0.05;

struct Turn {
  double time;
  uint64_t conversation, system;
  size_t system_blocks, blocks;
};

// Conversations come in bursts; each has some turns, with pauses; some share a system prompt.
std::vector<Turn> traffic(uint64_t seed) {
  RandomStream chance(seed, 1, 2);
  const auto waiting = [&](double mean) { return -mean * std::log(1 - double(chance.unit())); };
  std::vector<Turn> turns;
  double time = 0;
  for (uint64_t conversation = 1; conversation <= 2000; ++conversation) {
    // Four at a time, on average.
    if (chance.below(4) == 0) time += waiting(640);
    const uint64_t system = chance.below(6);
    const size_t system_blocks = system == 0 ? 0 : 8 * system;
    size_t blocks = 1 + size_t(waiting(12));
    double at = time;
    do {
      turns.push_back({at, conversation, system, system_blocks, blocks});
      blocks += 1 + size_t(waiting(6));
      at += waiting(60'000);
    } while (chance.below(100) < 70);
  }
  std::sort(turns.begin(), turns.end(),
            [](const Turn& a, const Turn& b) { return a.time < b.time; });
  return turns;
}

struct Outcome {
  double reuse = 0;                   // Of all bytes.
  double median_ms = 0, late_ms = 0;  // That prompts wait: of half of them, of 99 in 100.
};

// `choose`: the node for a turn, from what the nodes have to do.
using Choose = std::function<int32_t(const PromptKeys&, double now, std::span<const double> free)>;
// `told`: how it went.
using Told = std::function<void(int32_t node, size_t reused, size_t bytes, double ms, double begin,
                                double end)>;

Outcome simulate(const std::vector<Turn>& turns, const Choose& choose, const Told& told = {}) {
  std::vector<std::set<uint64_t>> read(kNodes);
  std::vector<double> free_at(kNodes, 0);
  std::vector<double> waits;
  double reused_bytes = 0, all_bytes = 0;
  for (const Turn& turn : turns) {
    const PromptKeys keys = prompt(turn.conversation, turn.blocks, turn.system, turn.system_blocks);
    const int32_t node = choose(keys, turn.time, free_at);
    size_t reused = 0;
    for (const PromptKeys::Prefix& prefix : keys.prefixes) {
      if (!read[size_t(node)].contains(prefix.key)) break;
      reused = prefix.end;
    }
    for (const PromptKeys::Prefix& prefix : keys.prefixes) read[size_t(node)].insert(prefix.key);
    const double begin = std::max(turn.time, free_at[size_t(node)]);
    const double ms = double(keys.bytes() - reused) * kMsPerByte;
    free_at[size_t(node)] = begin + ms;
    waits.push_back(begin - turn.time);
    reused_bytes += double(reused);
    all_bytes += double(keys.bytes());
    if (told) told(node, reused, keys.bytes(), ms, turn.time, begin + ms);
  }
  std::sort(waits.begin(), waits.end());
  return {.reuse = reused_bytes / all_bytes,
          .median_ms = waits[waits.size() / 2],
          .late_ms = waits[waits.size() * 99 / 100]};
}

// The policy hears of a reply when it has come.
Outcome by_policy(const std::vector<Turn>& turns, uint64_t seed) {
  Policy policy({.entry_count = size_t(1) << 18, .seed = seed});
  for (int32_t node = 0; node < kNodes; ++node) policy.add_node("node" + std::to_string(node));
  struct Coming {
    uint64_t request;
    ReplyFigures figures;
  };
  std::multimap<double, Coming> replies;
  uint64_t request = 0;
  const Choose choose = [&](const PromptKeys& keys, double now, std::span<const double>) {
    while (!replies.empty() && replies.begin()->first <= now) {
      const Coming& coming = replies.begin()->second;
      policy.begun(coming.request, replies.begin()->first);
      policy.ended(coming.request, coming.figures, true);
      replies.erase(replies.begin());
    }
    const Decision decision = policy.choose(keys, now);
    request = policy.sent(keys, decision, now);
    return decision.node;
  };
  const Told told = [&](int32_t, size_t reused, size_t bytes, double ms, double, double end) {
    replies.emplace(end, Coming{request,
                                {.reused_tokens = int64_t(reused / 4),
                                 .computed_tokens = int64_t((bytes - reused) / 4),
                                 .prompt_ms = ms}});
  };
  return simulate(turns, choose, told);
}

// Two by chance, of which the one that is free sooner.
Outcome by_chance(const std::vector<Turn>& turns, uint64_t seed) {
  RandomStream chance(seed, 3, 4);
  return simulate(turns, [&](const PromptKeys&, double, std::span<const double> free_at) {
    const auto first = int32_t(chance.below(kNodes)), second = int32_t(chance.below(kNodes));
    return free_at[size_t(first)] <= free_at[size_t(second)] ? first : second;
  });
}

Outcome by_hash(const std::vector<Turn>& turns) {
  return simulate(turns, [&](const PromptKeys& keys, double, std::span<const double>) {
    return int32_t(keys.affinity % kNodes);
  });
}

// One node with everybody's memory: what there is to be reused.
Outcome ideal(const std::vector<Turn>& turns) {
  return simulate(turns, [](const PromptKeys&, double, std::span<const double>) { return 0; });
}

TEST(Simulation, ReuseOfAHashAndWaitsOfChance) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const std::vector<Turn> turns = traffic(seed);
    const Outcome best = ideal(turns), cost = by_policy(turns, seed);
    const Outcome chance = by_chance(turns, seed), hash = by_hash(turns);
    const auto told = [&](const Outcome& one) {
      return fmt::format("reuse {:.3f} of {:.3f}, waits {:.0f} and {:.0f} ms", one.reuse,
                         best.reuse, one.median_ms, one.late_ms);
    };
    SCOPED_TRACE(fmt::format("seed {}: cost {}; chance {}; hash {}", seed, told(cost), told(chance),
                             told(hash)));
    EXPECT_GT(cost.reuse, 0.9 * best.reuse);
    EXPECT_GT(cost.reuse, 1.5 * chance.reuse);
    EXPECT_LT(cost.late_ms, 0.6 * hash.late_ms);
    EXPECT_LT(cost.late_ms, 0.5 * chance.late_ms);
    EXPECT_LE(cost.median_ms, chance.median_ms);
    EXPECT_LE(cost.median_ms, hash.median_ms);
  }
}

}  // namespace
}  // namespace cairn::route::policy_test
