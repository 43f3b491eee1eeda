// What the system sees: how much memory the process occupies, and that steady decoding asks for
// none and gives none back. Blocks have the sizes of real models; nothing is computed.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "device/host_memory.h"
#include "memory/memory.h"
#include "tests/memory/toy_format.h"

namespace cairn::memory {
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

TEST(SystemMemory, WhatTheProcessOccupiesFollowsTheLedger) {
#ifdef CAIRN_DEBUG_CHECKS
  GTEST_SKIP() << "sanitizers keep memory of their own beside each page";
#endif
  // 2 MiB a page: 192 MiB for 3072 tokens.
  const std::vector<std::vector<State>> layers(16, {State::full(8, 128, 128)});
  Layout layout = Layout::make(layers, testing::kToyFormat, KvType::f16, KvType::f16);
  HostMemory device;
  const auto memory =
      Memory::create(std::move(layout), {.budget_bytes = 256 * kMiB, .context_tokens_max = 4096},
                     device)
          .value();
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
  Layout layout = Layout::make(layers, testing::kToyFormat, KvType::f16, KvType::f16, 4096);
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
}  // namespace cairn::memory
