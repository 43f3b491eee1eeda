// What the system sees: how much memory the process occupies, and that steady decoding asks for
// none and gives none back. Blocks have the sizes of real models; nothing is computed.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "device/host_memory.h"
#include "memory/memory.h"
#include "tests/memory/inspector.h"
#include "tests/memory/toy_format.h"

namespace cairn::memory::system_memory_test {
namespace {

size_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  size_t size_pages = 0, resident_pages = 0;
  const int count = std::fscanf(file, "%zu %zu", &size_pages, &resident_pages);
  std::fclose(file);
  return count == 2 ? resident_pages * 4096 : 0;
}

void append(Memory& memory, Sequence& sequence, int32_t count, bool writes) {
  const std::vector<Token> tokens(size_t(count), Token(1));
  Transaction transaction = memory.begin(sequence, {.tokens = tokens}).value();
  const Slice slice = transaction.slice(0);
  const int32_t first_page = (slice.first_position + kPageTokens - 1) / kPageTokens;
  const int32_t page_end = (slice.first_position + count + kPageTokens - 1) / kPageTokens;
  for (const KvPlane& plane : memory.layout().kv_planes) {
    const size_t bytes = size_t(plane.kv_head_count) * size_t(plane.key_dim) * kPageTokens * 2;
    for (int32_t page = first_page; writes && page < page_end; ++page) {
      const size_t index = size_t(index_of(slice.pages[plane.group][page]));
      std::memset(plane.keys + index * plane.keys_page_bytes, 1, bytes);
      std::memset(plane.values + index * plane.values_page_bytes, 1, bytes);
    }
  }
  transaction.commit(count);
}

constexpr size_t kMiB = size_t(1) << 20;

// A budget of 256 MiB for up to 4096 tokens of so many layers, each with 128 KiB a page.
std::unique_ptr<Memory> memory_of_layers(size_t layer_count, HostMemory& device) {
  const std::vector<std::vector<State>> layers(layer_count, {State::full(8, 128, 128)});
  Layout layout = Layout::make(layers, toy::kToyFormat, KvType::f16, KvType::f16);
  return Memory::create(std::move(layout), {.budget_bytes = 256 * kMiB, .context_tokens_max = 4096},
                        device)
      .value();
}

TEST(SystemMemory, WhatTheProcessOccupiesFollowsTheLedger) {
#ifdef CAIRN_DEBUG_CHECKS
  GTEST_SKIP() << "sanitizers keep memory of their own beside each page";
#endif
  // 2 MiB a page: 192 MiB for 3072 tokens.
  HostMemory device;
  const auto memory = memory_of_layers(16, device);
  const size_t page_bytes = memory->layout().groups[0].block_bytes;
  ASSERT_EQ(page_bytes, 2 * kMiB);
  const size_t before = resident_bytes();
  if (before == 0) GTEST_SKIP() << "/proc/self/statm cannot be read";
  const auto grown = [&] {
    const size_t now = resident_bytes();
    return now > before ? now - before : 0;
  };
  Sequence sequence = memory->new_sequence();
  append(*memory, sequence, 3072, true);
  EXPECT_GE(grown(), 190 * kMiB);
  for (const int32_t length : {2048, 1000, 10, 0}) {
    sequence = memory->at(sequence, length).value();
    const Usage usage = memory->usage();
    const size_t held_bytes = usage.used_bytes() + usage.warm_bytes;
    EXPECT_LE(usage.warm_bytes, 8 * kMiB);
    EXPECT_LE(grown(), held_bytes + held_bytes / 50 + 4 * kMiB) << length;
  }
  memory->close(sequence);
  EXPECT_LE(grown(), 4 * kMiB);
}

// Blocks of 1.5 MiB: four on three huge pages.
TEST(SystemMemory, HugePagesAreGivenBackWhole) {
#ifdef CAIRN_DEBUG_CHECKS
  GTEST_SKIP() << "sanitizers keep memory of their own beside each page";
#endif
  Ledger ledger(1024 * kMiB);
  HostMemory device;
  Pool pool =
      Pool::create({.block_bytes = 3 * kMiB / 2, .block_count_max = 32}, &ledger, &device).value();
  const size_t before = resident_bytes();
  if (before == 0) GTEST_SKIP() << "/proc/self/statm cannot be read";
  std::vector<PageId> blocks;
  for (int32_t i = 0; i < 32; ++i) {
    blocks.push_back(pool.take());
    std::memset(pool.address(blocks.back()), i + 1, pool.block_bytes());
  }
  const auto release = [&](size_t which) {
    for (size_t i = which; i < blocks.size(); i += 4) pool.release(blocks[i]);
  };
  // The third of four has a part of two huge pages, on which others lie: they stay whole.
  release(2);
  EXPECT_LE(ledger.held_bytes(), 38 * kMiB);
  EXPECT_GE(resident_bytes(), before + 47 * kMiB);
  // More than that would not follow the ledger.
  release(1);
  release(3);
  EXPECT_LE(resident_bytes(), before + ledger.held_bytes() + 16 * kMiB);
  for (size_t i = 0; i < blocks.size(); i += 4) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(pool.address(blocks[i]));
    for (size_t at = 0; at < pool.block_bytes(); at += 4093) ASSERT_EQ(i + 1, bytes[at]);
  }
  release(0);
  EXPECT_LE(resident_bytes(), before + 4 * kMiB);
  EXPECT_EQ(0u, ledger.held_bytes());
}

// Sequences that grow by turns lie one page after the other; that 31 of 32 have gone is seen.
TEST(SystemMemory, InterleavedSequencesGiveTheirMemoryBack) {
#ifdef CAIRN_DEBUG_CHECKS
  GTEST_SKIP() << "sanitizers keep memory of their own beside each page";
#endif
  // 128 KiB a page: 16 on a huge page.
  HostMemory device;
  const auto memory = memory_of_layers(1, device);
  const size_t before = resident_bytes();
  if (before == 0) GTEST_SKIP() << "/proc/self/statm cannot be read";
  std::vector<Sequence> sequences;
  for (int32_t index = 0; index < 32; ++index) sequences.push_back(memory->new_sequence());
  for (int32_t page = 0; page < 60; ++page) {
    for (Sequence& sequence : sequences) append(*memory, sequence, kPageTokens, true);
  }
  EXPECT_GE(resident_bytes(), before + 230 * kMiB);
  for (size_t index = 1; index < sequences.size(); ++index) memory->close(sequences[index]);
  const Usage usage = memory->usage();
  const size_t held_bytes = usage.used_bytes() + usage.warm_bytes;
  EXPECT_LE(held_bytes, 16 * kMiB);
  EXPECT_LE(resident_bytes(), before + held_bytes + held_bytes / 8 + 8 * kMiB + 2 * kMiB);
  // What is left is whole, and grows again.
  for (const PageId page : Inspector::table(sequences[0], 0).pages()) {
    const auto* bytes =
        reinterpret_cast<const uint8_t*>(Inspector::store(*memory).pool(0).address(page));
    for (size_t at = 0; at < 128 * 1024; at += 4093) ASSERT_EQ(bytes[at], 1);
  }
  append(*memory, sequences[0], 64 * kPageTokens, true);
}

// What one group has let go of is not resident beside what another one takes.
TEST(SystemMemory, GroupsStayWithinTheBudgetTogether) {
#ifdef CAIRN_DEBUG_CHECKS
  GTEST_SKIP() << "sanitizers keep memory of their own beside each page";
#endif
  const std::vector<std::vector<State>> layers = {{State::full(8, 128, 128)},
                                                  {State::windowed(500, 16, 128, 128)},
                                                  {State::chunked(500, 3, 96, 96)}};
  HostMemory device;
  const auto store = Store::create(Layout::make(layers, toy::kToyFormat, KvType::f16, KvType::f16),
                                   {.budget_bytes = 400 * kMiB, .context_tokens_max = 4096}, device)
                         .value();
  const size_t before = resident_bytes();
  if (before == 0) GTEST_SKIP() << "/proc/self/statm cannot be read";
  const auto fill = [&](int32_t group) {
    std::vector<PageId> blocks;
    for (PageId block = store->take(group, 0); block != kNoPage; block = store->take(group, 0)) {
      std::memset(store->pool(group).address(block), 1, store->pool(group).block_bytes());
      blocks.push_back(block);
      if (blocks.size() % 64 != 0) continue;
      EXPECT_LE(resident_bytes(), before + 412 * kMiB);
    }
    return blocks;
  };
  // By turns: nearly all of each group's blocks go, and the next group takes what they had.
  for (const int32_t group : {0, 1, 2, 0, 1}) {
    const std::vector<PageId> blocks = fill(group);
    EXPECT_LE(resident_bytes(), before + 412 * kMiB) << group;
    EXPECT_LE(resident_bytes(), before + store->resident_bytes() + 6 * kMiB) << group;
    for (size_t index = 0; index < blocks.size(); ++index) {
      if (index % 32 != 0) store->pool(group).release(blocks[index]);
    }
  }
}

// Reserved addresses are no committed memory, however large the budget: so it can be had where the
// system promises no more than it has. A limit of data, which counts the same pages, stands for it.
TEST(SystemMemory, OnlyWhatIsUsedIsCommitted) {
#ifdef CAIRN_DEBUG_CHECKS
  GTEST_SKIP() << "sanitizers keep memory of their own beside each page";
#endif
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit limit = {};
    ::getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = 256 * kMiB;
    if (::setrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(2);
    const std::vector<std::vector<State>> layers(1, {State::full(8, 128, 128)});
    HostMemory device;
    auto memory =
        Memory::create(Layout::make(layers, toy::kToyFormat, KvType::f16, KvType::f16, 64),
                       {.budget_bytes = 16384 * kMiB, .context_tokens_max = 1 << 20}, device);
    if (!memory) ::_exit(3);
    // Where the system gives no more, that is said, and what there is goes on.
    Sequence sequence = (*memory)->new_sequence();
    const std::vector<Token> tokens(32 * kPageTokens, Token(1));
    int32_t steps = 0;
    for (;; ++steps) {
      Result<Transaction> begun = (*memory)->begin(sequence, {.tokens = tokens});
      if (!begun) {
        if (begun.error().code != ErrorCode::memory_full || steps < 10 || steps > 64) ::_exit(4);
        break;
      }
      begun->commit(int32_t(tokens.size()));
    }
    sequence = (*memory)->at(sequence, 32 * kPageTokens).value();
    ::_exit((*memory)->begin(sequence, {.tokens = tokens}) ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "no limits here";
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

// The states that a conversation begins with are there, cleared, before it does and after it.
TEST(SystemMemory, TwoStatesStayWarm) {
  const std::vector<std::vector<State>> layers(1, {State::recurrent({int64_t(8) << 20})});
  HostMemory device;
  const auto memory =
      Memory::create(Layout::make(layers, toy::kToyFormat, KvType::f16, KvType::f16),
                     {.budget_bytes = 200 * kMiB, .context_tokens_max = 4096}, device)
          .value();
  EXPECT_EQ(memory->usage().warm_bytes, 0u);
  memory->keep_states_warm(2);
  const size_t two_bytes = 64 * kMiB;
  EXPECT_EQ(memory->usage().warm_bytes, two_bytes);
  EXPECT_EQ(memory->usage().used_bytes(), 0u);
  const auto step = [&](Sequence& sequence) {
    const Token one = Token(1);
    Transaction transaction = memory->begin(sequence, {.tokens = {&one, 1}}).value();
    std::byte* const state = transaction.slice(0).captures[0].states[0];
    for (size_t at = 0; at < 32 * kMiB; at += 4096) state[at] = std::byte(1);
    transaction.commit(1);
  };
  for (int32_t round = 0; round < 2; ++round) {
    Sequence sequence = memory->new_sequence();
    rusage first = {}, last = {};
    ::getrusage(RUSAGE_SELF, &first);
    step(sequence);
    step(sequence);
    ::getrusage(RUSAGE_SELF, &last);
#ifndef CAIRN_DEBUG_CHECKS
    EXPECT_LT(last.ru_minflt - first.ru_minflt, 16) << "nothing has to be cleared";
#endif
    // A third state comes and goes.
    Sequence other = memory->new_sequence();
    step(other);
    step(other);
    memory->close(other);
    memory->close(sequence);
    EXPECT_EQ(memory->usage().warm_bytes, two_bytes);
  }
  // They give way.
  std::vector<Sequence> all;
  for (int32_t index = 0; index < 5; ++index) {
    append(*memory, all.emplace_back(memory->new_sequence()), 1, false);
  }
  EXPECT_EQ(memory->usage().state_bytes, 160 * kMiB);
  memory->trim();
  EXPECT_EQ(memory->usage().warm_bytes, 0u);
}

// Once there was a log, the pages of one sequence's stay: the system takes as long to clear them as
// a model takes for some tokens.
TEST(SystemMemory, TheLogOfASequenceStaysWarm) {
  const std::vector<std::vector<State>> layers(1, {State::recurrent({int64_t(1) << 20})});
  HostMemory device;
  Layout layout = Layout::make(layers, toy::kToyFormat, KvType::f16, KvType::f16);
  layout.add_log(std::array<int32_t, 1>{1 << 16});  // 2 MiB a page.
  const auto memory =
      Memory::create(std::move(layout),
                     {.budget_bytes = 200 * kMiB, .context_tokens_max = 4096, .log_step = 16},
                     device)
          .value();
  memory->keep_states_warm(2);
  const size_t states_bytes = memory->usage().warm_bytes;
  EXPECT_EQ(states_bytes, 8 * kMiB);
  const size_t page_bytes = 2 * kMiB, log_bytes = (32 / kLogPageTokens + 1) * page_bytes;
  for (int32_t round = 0; round < 2; ++round) {
    Sequence sequence = memory->new_sequence();
    for (int32_t step = 0; step < 100; ++step) append(*memory, sequence, 1, false);
    EXPECT_LE(memory->usage().log_bytes, log_bytes);
    memory->close(sequence);
    EXPECT_EQ(memory->usage().warm_bytes, states_bytes + log_bytes);
  }
  memory->trim();
  EXPECT_EQ(memory->usage().warm_bytes, 0u);
}

// Sequences that step together take a state each before one is let go: none of them comes from the
// system anew. When steps have been narrower for a while, what they no longer take goes back to it.
TEST(SystemMemory, AWideStepFindsItsStatesWarm) {
  constexpr size_t kSequences = 5;
  const std::vector<std::vector<State>> layers(1, {State::recurrent({int64_t(1) << 20})});
  HostMemory device;
  const auto memory =
      Memory::create(Layout::make(layers, toy::kToyFormat, KvType::f16, KvType::f16),
                     {.budget_bytes = 400 * kMiB, .context_tokens_max = 4096}, device)
          .value();
  const size_t state_bytes = 4 * kMiB;
  memory->keep_states_warm(2);
  std::vector<Sequence> sequences;
  for (size_t index = 0; index < kSequences; ++index) {
    append(*memory, sequences.emplace_back(memory->new_sequence()), 1, false);
  }
  const auto step_all = [&](size_t count) {
    const Token one = Token(1);
    std::vector<Transaction> transactions;
    for (size_t index = 0; index < count; ++index) {
      transactions.push_back(memory->begin(sequences[index], {.tokens = {&one, 1}}).value());
    }
    memory->expect_states(int32_t(count));
    for (Transaction& transaction : transactions) transaction.commit(1);
  };
  for (int32_t step = 0; step < 300; ++step) {
    step_all(kSequences);
    ASSERT_GE(memory->usage().warm_bytes, kSequences * state_bytes) << step;
  }
  for (int32_t step = 0; step < 200; ++step) step_all(1);
  EXPECT_LE(memory->usage().warm_bytes, 3 * state_bytes);
}

// Held bytes grow by what a conversation keeps and never shrink, while windows slide, states turn
// and the log moves on: so no block goes to the system and comes back.
TEST(SystemMemory, SteadyDecodingGivesNothingBack) {
  std::vector<std::vector<State>> layers;
  for (int32_t layer = 0; layer < 40; ++layer) {
    if (layer % 4 == 0) {
      layers.push_back({State::recurrent({int64_t(3) * 3328, int64_t(48) * 64 * 128})});
    } else {
      layers.push_back(
          {layer % 4 == 1 ? State::full(8, 128, 128) : State::windowed(500, 16, 256, 256)});
    }
  }
  Layout layout = Layout::make(layers, toy::kToyFormat, KvType::f16, KvType::f16, 4096);
  layout.add_log(std::vector<int32_t>(10, 3376));
  HostMemory device;
  const auto memory =
      Memory::create(std::move(layout),
                     {.budget_bytes = size_t(8) << 30, .context_tokens_max = 4096}, device)
          .value();
  Sequence sequence = memory->new_sequence();
  memory->protect_from(sequence, 4096);
  append(*memory, sequence, 700, false);
  size_t held_bytes = 0, window_bytes = 0;
  for (int32_t token = 0; token < 2500; ++token) {
    append(*memory, sequence, 1, false);
    const Usage usage = memory->usage();
    EXPECT_GE(usage.used_bytes() + usage.warm_bytes, held_bytes) << token;
    held_bytes = usage.used_bytes() + usage.warm_bytes;
    const std::vector<GroupUsage> groups = memory->usage(sequence);
    for (const GroupUsage& group : groups) {
      if (group.kind == GroupKind::window) window_bytes = std::max(window_bytes, group.bytes);
    }
  }
  // The window's 500 tokens, and what is needed to go back within the log's two steps.
  const int32_t page_count = (500 + 2 * memory->log_step() + 2 * kPageTokens) / kPageTokens;
  EXPECT_LE(window_bytes, size_t(page_count) * memory->layout().groups[2].block_bytes);
}

}  // namespace
}  // namespace cairn::memory::system_memory_test
