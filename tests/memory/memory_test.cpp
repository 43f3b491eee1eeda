// Single rules of the memory, one test each; programs of many operations are in simulator_test.
#include "memory/memory.h"

#include <gtest/gtest.h>

#include "memory/cache/prefix_cache.h"
#include "tests/memory/toy_bench.h"

namespace cairn::memory::memory_test {
namespace {

using toy::tokens;
using toy::ToyBench;
using toy::ToyModel;

ToyModel hybrid() {
  return ToyModel({{ToyModel::full()}, {ToyModel::recurrent()}, {ToyModel::full()}});
}

TEST(Layout, GroupsLayersByKindAndPlacesThem) {
  const std::vector<std::vector<State>> layers = {{State::full(2, 3, 5)},
                                                  {State::recurrent({4, 9})},
                                                  {State::full(1, 4, 4)},
                                                  {State::windowed(7, 1, 4, 4)},
                                                  {State::shared(2)}};
  Layout layout = Layout::make(layers, toy::kToyFormat, KvType::f32, KvType::f16, 100);
  layout.add_log(std::vector<int32_t>{3, 16});
  ASSERT_EQ(layout.groups.size(), 5u);
  EXPECT_EQ(layout.kv_plane_of_layer, (std::vector<int32_t>{0, -1, 1, 2, 1}));
  EXPECT_EQ(layout.state_tensor_of_layer, (std::vector<int32_t>{-1, 0, -1, -1, -1}));
  // Keys of 2 heads, 3 elements, 32 tokens in f32; values of 5 elements in f16; and the other
  // layer.
  const size_t full_bytes = 2 * 3 * 32 * 4 + 2 * 5 * 32 * 2 + 4 * 32 * 4 + 4 * 32 * 2;
  EXPECT_EQ(layout.groups[0].block_bytes, full_bytes);
  EXPECT_EQ(layout.kv_planes[1].keys_page_bytes, full_bytes);
  EXPECT_EQ(layout.state_tensors[1].offset, 64u);
  EXPECT_EQ(layout.groups[size_t(layout.hidden_group)].block_bytes, 448u);
  EXPECT_EQ(layout.groups[size_t(layout.log_group)].block_bytes, 8u * 3 * 4 + 32 + 8 * 16 * 4);
  std::vector<std::byte> arena(16);
  layout.attach(std::vector<std::byte*>(5, arena.data()));
  EXPECT_EQ(layout.kv_planes[0].keys, arena.data());
  EXPECT_EQ(layout.kv_planes[0].values - arena.data(), 2 * 3 * 32 * 4);
  EXPECT_EQ(layout.log_planes[1].first - arena.data(), 8 * 3 * 4 + 32);
}

TEST(Layout, ValuesThatBeginKeysTakeNoRoom) {
  const std::vector<std::vector<State>> layers = {{State::latent(18, 16)}, {State::full(1, 4, 4)}};
  Layout layout = Layout::make(layers, toy::kToyFormat, KvType::f16, KvType::q8_0);
  const KvPlane& latent = layout.kv_planes[0];
  EXPECT_TRUE(latent.values_in_keys);
  EXPECT_EQ(latent.value_type, KvType::f16);
  EXPECT_EQ(latent.value_bytes, 0u);
  EXPECT_EQ(layout.groups[0].block_bytes, 18u * 32 * 2 + 4 * 32 * 2 + 4 * 32 + 64);
  std::vector<std::byte> arena(16);
  layout.attach(std::vector<std::byte*>(1, arena.data()));
  EXPECT_EQ(latent.values, arena.data());
  EXPECT_EQ(layout.kv_planes[1].keys - arena.data(), 18 * 32 * 2);
}

// A device may want other borders than this machine's, and other sizes.
TEST(Layout, FollowsTheFormatOfTheBackend) {
  const PageFormat format{.head_bytes = [](KvType, int32_t dim) { return size_t(dim) * 100; },
                          .alignment = 256,
                          .unit_bytes = 1000};
  const std::vector<std::vector<State>> layers = {{State::full(3, 5, 7)},
                                                  {State::recurrent({1, 2000})}};
  const Layout layout = Layout::make(layers, format, KvType::f32, KvType::q4_0, 1);
  const KvPlane& plane = layout.kv_planes[0];
  EXPECT_EQ(plane.key_bytes, 500u);
  EXPECT_EQ(plane.value_bytes, 700u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(plane.values), 1536u) << "3 * 500, aligned";
  EXPECT_EQ(layout.groups[0].block_bytes, 1536u + 2304) << "too small to be filled up";
  EXPECT_EQ(layout.state_tensors[1].offset, 256u);
  EXPECT_EQ(layout.groups[size_t(layout.recurrent_group)].block_bytes, 256u + 8192);
  EXPECT_EQ(layout.groups[size_t(layout.hidden_group)].block_bytes, 256u);
  const std::vector<std::vector<State>> large = {{State::full(1, 200, 1)}};
  EXPECT_EQ(Layout::make(large, format, KvType::f32, KvType::f32).groups[0].block_bytes, 21000u);
}

TEST(Memory, FailedBeginChangesNothing) {
  ToyBench bench(hybrid(), {.budget_bytes = 4000});
  Memory& memory = *bench.memory;
  Sequence sequence = memory.new_sequence();
  ASSERT_TRUE(bool(bench.read(sequence, tokens(40))));
  const Sequence fork = memory.fork(sequence).value();  // The tail is shared: begin() copies.
  const size_t used_bytes = memory.usage().used_bytes();
  const std::vector<Token> many = tokens(300);
  const auto refused = memory.begin(sequence, {.tokens = many});
  ASSERT_FALSE(bool(refused));
  EXPECT_EQ(refused.error().code, ErrorCode::memory_full);
  // 9 pages and the copied tail, and a state.
  const size_t needed_bytes = 10 * memory.layout().groups[0].block_bytes + 128;
  EXPECT_NE(refused.error().message.find(fmt::format("need {} bytes", needed_bytes)),
            std::string::npos)
      << refused.error().message;
  EXPECT_EQ(memory.usage().used_bytes(), used_bytes);
  bench.expect_exact(sequence);
  bench.expect_exact(fork);
}

TEST(Memory, PlanNamesWhatLimitsARewind) {
  ToyBench bench(hybrid(), {}, false);
  Memory& memory = *bench.memory;
  Sequence sequence = memory.new_sequence();
  ASSERT_TRUE(bool(bench.read(sequence, tokens(100), {10, 64})));
  EXPECT_EQ(memory.plan(sequence, 100).forward_tokens, 0);
  EXPECT_TRUE(memory.plan(sequence, 100, true).logits_ready);
  const ResumePlan plan = memory.plan(sequence, 70);
  EXPECT_EQ(plan.resume, 64);
  EXPECT_EQ(plan.forward_tokens, 6);
  EXPECT_EQ(plan.limited_by, "recurrent");
  EXPECT_NE(plan.reason.find("64"), std::string::npos);
  EXPECT_EQ(memory.plan(sequence, 9).resume, 0);
  EXPECT_EQ(memory.plan(sequence, 130).forward_tokens, 30);
  EXPECT_EQ(memory.plan(sequence, 130).limited_by, "");
  // No row was kept there: one token is read again, from the state before it.
  const ResumePlan logits = memory.plan(sequence, 64, true);
  EXPECT_EQ(logits.resume, 10);
  EXPECT_EQ(logits.limited_by, "hidden");
  // Going back to an anchor leaves it in place: the way can be gone again and again.
  Sequence again = memory.at(sequence, 64).value();
  ASSERT_TRUE(bool(bench.read(again, tokens(5, 9))));
  EXPECT_EQ(memory.plan(again, 64).forward_tokens, 0);
  ASSERT_TRUE(bool(memory.keep_anchor(again, AnchorKind::answer_end)));
  ASSERT_TRUE(bool(memory.keep_anchor(again, AnchorKind::prompt_end)));
  EXPECT_EQ(again.anchors().size(), 3u);
  EXPECT_EQ(again.anchors().back().kind, AnchorKind::prompt_end);
  EXPECT_EQ(memory.at(again, 69).value().length(), 69);
  ASSERT_TRUE(bool(memory.drop_anchor(sequence, 0)));
  EXPECT_EQ(memory.plan(sequence, 63).resume, 0);
}

// Any number of a short transaction's tokens can be accepted; the state comes back from the log.
TEST(Memory, TheLogBringsStatesBack) {
  ToyBench bench(hybrid(), {.log_step = 16});
  Memory& memory = *bench.memory;
  Sequence sequence = memory.new_sequence();
  ASSERT_TRUE(bool(bench.read(sequence, tokens(50))));
  ASSERT_TRUE(bool(bench.read(sequence, tokens(16), {}, 11)));
  EXPECT_TRUE(memory.needs_replay(sequence));
  EXPECT_EQ(sequence.length(), 61);
  bench.expect_exact(sequence);
  const std::vector<Token> more = tokens(1);
  EXPECT_FALSE(bool(memory.begin(sequence, {.tokens = more})));
  EXPECT_FALSE(bool(memory.keep_anchor(sequence, AnchorKind::answer_end)));
  {
    const Replay abandoned = memory.begin_replay(sequence, 1000).value();
    EXPECT_EQ(abandoned.row_count(), 11);
  }
  EXPECT_TRUE(memory.needs_replay(sequence));
  bench.replay(sequence, 4);
  EXPECT_FALSE(memory.needs_replay(sequence));
  bench.expect_exact(sequence);
  for (int32_t token = 0; token < 60; ++token) ASSERT_TRUE(bool(bench.read(sequence, tokens(1))));
  for (int32_t back = 0; back <= 16; ++back) {
    const ResumePlan plan = memory.plan(sequence, sequence.length() - back);
    EXPECT_EQ(plan.forward_tokens, 0) << back;
    EXPECT_LE(plan.recurrence_steps, 16);
    const Sequence before = memory.at(sequence, sequence.length() - back).value();
    bench.expect_exact(before);
  }
  EXPECT_TRUE(memory.suspend(sequence));
  EXPECT_FALSE(memory.suspend(sequence));
  bench.expect_exact(sequence);
  // The state that is replayed from cannot go, the others can.
  size_t refused_count = 0;
  while (refused_count < sequence.anchors().size()) {
    if (!memory.drop_anchor(sequence, refused_count)) ++refused_count;
    bench.expect_exact(sequence);
  }
  EXPECT_EQ(refused_count, 1u);
}

// Of five tokens three are accepted, again and again, and no state was stored there: what is
// replayed are these three, not all since the last anchor.
TEST(Memory, PartialAcceptanceReplaysOnlyWhatWasAccepted) {
  ToyBench bench(hybrid(), {.log_step = 32});
  Memory& memory = *bench.memory;
  Sequence sequence = memory.new_sequence();
  ASSERT_TRUE(bool(bench.read(sequence, tokens(50))));
  const size_t state_bytes =
      memory.layout().groups[size_t(memory.layout().recurrent_group)].block_bytes;
  int32_t replay_count = 0, replayed_rows = 0;
  for (int32_t step = 0; step < 200; ++step) {
    if (memory.needs_replay(sequence)) {
      ++replay_count;
      replayed_rows += memory.begin_replay(sequence, 1000).value().row_count();
      bench.replay(sequence, 1000);
    }
    ASSERT_TRUE(bool(bench.read(sequence, tokens(5, step), {}, 3)));
    ASSERT_NO_FATAL_FAILURE(bench.expect_exact(sequence));
    EXPECT_LE(memory.usage().state_bytes, 5 * state_bytes) << step;
    for (int32_t back = 0; back <= 32 && step > 10; back += 4) {
      const ResumePlan plan = memory.plan(sequence, sequence.length() - back);
      ASSERT_EQ(plan.forward_tokens, 0) << step << ", back " << back;
      ASSERT_LE(plan.recurrence_steps, 32) << step << ", back " << back;
    }
  }
  EXPECT_EQ(replay_count, 199);
  EXPECT_LE(replayed_rows, 199 * 3);
}

TEST(Memory, WindowsKeepWhatIsProtected) {
  ToyBench bench(ToyModel({{ToyModel::window(40)}}));
  Memory& memory = *bench.memory;
  Sequence sequence = memory.new_sequence();
  ASSERT_TRUE(bool(bench.read(sequence, tokens(300), {100})));
  EXPECT_EQ(memory.usage(sequence)[0].blocks, 10);
  memory.protect_from(sequence, 250);
  // Positions 211.. for the end, 61.. up to 100 for the anchor.
  EXPECT_EQ(memory.usage(sequence)[0].blocks, 4 + 3);
  EXPECT_EQ(memory.anchor_exclusive_bytes(sequence, 0), 3 * memory.layout().groups[0].block_bytes);
  EXPECT_EQ(memory.plan(sequence, 250).resume, 250);
  const ResumePlan plan = memory.plan(sequence, 180);
  EXPECT_EQ(plan.resume, 128);  // Page 1 to 3 are held, and 128 is where the third ends.
  EXPECT_EQ(plan.limited_by, "window");
  ASSERT_TRUE(bool(memory.drop_anchor(sequence, 0)));
  EXPECT_EQ(memory.usage(sequence)[0].blocks, 4);
  EXPECT_EQ(memory.plan(sequence, 180).resume, 0);
  bench.expect_exact(sequence);
}

TEST(Memory, BadRequestsAreErrors) {
  ToyBench bench(hybrid(), {.context_tokens_max = 100});
  Memory& memory = *bench.memory;
  Sequence sequence = memory.new_sequence();
  ASSERT_TRUE(bool(bench.read(sequence, tokens(60))));
  EXPECT_NE(memory.at(sequence, 61).error().message.find("61"), std::string::npos);
  EXPECT_FALSE(bool(memory.at(sequence, -1)));
  const std::vector<Token> too_many = tokens(41);
  const auto too_long = memory.begin(sequence, {.tokens = too_many});
  EXPECT_EQ(too_long.error().code, ErrorCode::context_full);
  EXPECT_NE(too_long.error().message.find("101 tokens are needed, 100 fit"), std::string::npos);
  EXPECT_FALSE(bool(memory.begin(sequence, {})));
  for (const std::vector<int32_t>& captures :
       std::vector<std::vector<int32_t>>{{0}, {-1}, {5, 5}, {6, 2}, {42}}) {
    EXPECT_FALSE(bool(memory.begin(sequence, {.tokens = too_many, .captures = captures})));
  }
  EXPECT_FALSE(bool(memory.drop_anchor(sequence, 5)));
  EXPECT_FALSE(bool(memory.begin_replay(sequence, 10)));
  bench.expect_exact(sequence);
  Sequence moved = std::move(sequence);
  memory.close(moved);
  for (Sequence* closed : {&moved, &sequence}) {
    EXPECT_FALSE(bool(memory.fork(*closed)));
    EXPECT_FALSE(bool(memory.at(*closed, 0)));
    EXPECT_FALSE(bool(memory.begin(*closed, {.tokens = too_many})));
    EXPECT_FALSE(bool(memory.keep_anchor(*closed, AnchorKind::tail)));
    EXPECT_NE(memory.plan(*closed, 5).reason.find("closed"), std::string::npos);
    EXPECT_FALSE(memory.suspend(*closed));
    EXPECT_TRUE(memory.usage(*closed).empty());
  }
  EXPECT_EQ(memory.usage().used_bytes(), 0u);
  EXPECT_EQ(memory.usage().warm_bytes, 0u);
}

TEST(Memory, ABudgetThatIsTooSmallIsToldWithBothNumbers) {
  const ToyModel model = hybrid();
  size_t needed_bytes = 128;  // The second state.
  for (const GroupSpec& group : model.layout().groups) needed_bytes += group.block_bytes;
  HostMemory device;
  const auto small = Memory::create(
      model.layout(), {.budget_bytes = needed_bytes - 1, .context_tokens_max = 100}, device);
  ASSERT_FALSE(bool(small));
  EXPECT_EQ(small.error().code, ErrorCode::memory_full);
  for (const size_t bytes : {needed_bytes, needed_bytes - 1}) {
    EXPECT_NE(small.error().message.find(std::to_string(bytes)), std::string::npos);
  }
  EXPECT_TRUE(bool(Memory::create(
      model.layout(), {.budget_bytes = needed_bytes, .context_tokens_max = 100}, device)));
}

// A budget for which there are no addresses is a matter of memory too; the error says of how much.
TEST(Memory, ABudgetWithoutAddressesIsMemoryThatIsFull) {
  const ToyModel model({{State::full(1 << 12, 1 << 10, 1 << 10)}});
  HostMemory device;
  const size_t budget_bytes = size_t(1) << 50;
  const auto refused = Memory::create(
      model.layout(), {.budget_bytes = budget_bytes, .context_tokens_max = 100}, device);
  ASSERT_FALSE(bool(refused));
  EXPECT_EQ(refused.error().code, ErrorCode::memory_full);
  EXPECT_NE(refused.error().message.find(std::to_string(budget_bytes)), std::string::npos)
      << refused.error().message;
}

// Free blocks of one group, kept warm, make room for another.
TEST(Memory, WarmBlocksGiveWay) {
  const ToyModel model({{ToyModel::full()}});
  const size_t page_bytes = model.layout().groups[0].block_bytes;
  const size_t row_bytes = model.layout().groups[1].block_bytes;
  ToyBench bench(model, {.budget_bytes = 4 * page_bytes + row_bytes - 1});
  Sequence sequence = bench.memory->new_sequence();
  ASSERT_TRUE(bool(bench.read(sequence, tokens(128), {}, -1, false)));
  sequence = bench.memory->at(sequence, 10).value();
  EXPECT_EQ(bench.memory->usage().used_bytes(), page_bytes);
  EXPECT_EQ(bench.memory->usage().warm_bytes, 3 * page_bytes);
  EXPECT_TRUE(bool(bench.read(sequence, tokens(1))));
  EXPECT_EQ(bench.memory->usage().warm_bytes, 0u);
  EXPECT_EQ(bench.memory->usage().used_bytes(), page_bytes + row_bytes);
}

// What is no block is within the budget too, and counted before it is there.
TEST(Memory, WhatOthersTakeIsWithinTheBudget) {
  ToyBench bench(ToyModel({{ToyModel::full()}}), {.budget_bytes = 64 << 10});
  Memory& memory = *bench.memory;
  const size_t budget = memory.options().budget_bytes;
  Sequence sequence = memory.new_sequence();
  ASSERT_TRUE(bool(bench.read(sequence, tokens(128))));
  sequence = memory.at(sequence, 10).value();
  const size_t used = memory.usage().used_bytes();
  ASSERT_GT(memory.usage().warm_bytes, 0u);
  EXPECT_FALSE(memory.take_others(budget - used + 1));
  EXPECT_EQ(memory.usage().other_bytes, 0u);
  ASSERT_TRUE(memory.take_others(budget - used)) << "warm blocks give way";
  EXPECT_EQ(memory.usage().used_bytes(), budget);
  EXPECT_EQ(memory.usage().warm_bytes, 0u);
  EXPECT_FALSE(bool(bench.read(sequence, tokens(40))));
  EXPECT_FALSE(memory.take_others(1));
  memory.give_back_others(budget - used);
  EXPECT_EQ(memory.usage().used_bytes(), used);
  EXPECT_TRUE(bool(bench.read(sequence, tokens(40))));
  // The cache asks others before it gives up, as long as they have something.
  PrefixCache cache(&memory);
  int32_t asked = 0;
  ASSERT_TRUE(memory.take_others(budget - memory.usage().used_bytes()));
  const size_t taken = memory.usage().other_bytes;
  cache.on_shortage([&] {
    if (++asked > 2) return false;
    memory.give_back_others(taken / 4);
    return true;
  });
  EXPECT_TRUE(cache.make_room(taken / 2));
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(cache.make_room(budget));
  EXPECT_EQ(asked, 3);
}

TEST(TokenList, CopiesPartWhenBothGoOn) {
  TokenList list(100);
  list.append(tokens(40));
  TokenList copy = list;
  copy.truncate(30);
  EXPECT_EQ(copy.view().data(), list.view().data());
  list.append(tokens(10, 7));
  copy.append(tokens(10, 8));
  EXPECT_NE(copy.view().data(), list.view().data());
  EXPECT_EQ(list.view()[40], Token(7));
  EXPECT_EQ(copy.view()[30], Token(8));
  EXPECT_EQ(list.view()[30], Token(31));
  TokenList fork = list;
  const Token* const place = list.view().data();
  fork.append(tokens(200));  // More than the shared buffer holds: it must not move under `list`.
  EXPECT_EQ(list.view().data(), place);
  EXPECT_EQ(list.view().size(), 50u);
  EXPECT_EQ(fork.view()[249], tokens(200).back());
}

}  // namespace
}  // namespace cairn::memory::memory_test
