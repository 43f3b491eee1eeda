// The counts against all references that there are, over random sequences that come and go.
#include "memory/cache/block_counts.h"

#include <gtest/gtest.h>

#include <list>
#include <random>

#include "tests/memory/inspector.h"
#include "tests/memory/toy_bench.h"

namespace cairn::memory::block_counts_test {
namespace {

using toy::ToyBench;
using toy::ToyModel;
using References = std::vector<std::vector<int32_t>>;  // [group][block]

int32_t at(const References& references, size_t group, size_t block) {
  return block < references[group].size() ? references[group][block] : 0;
}

// What is counted, what it takes, and what nobody else refers to.
void expect_counts(const ToyBench& bench, const BlockCounts& counts, const References& counted,
                   const References& all) {
  const Layout& layout = bench.memory->layout();
  size_t held_bytes = 0, exclusive_bytes = 0;
  for (size_t group = 0; group < all.size(); ++group) {
    for (size_t block = 0; block < all[group].size(); ++block) {
      const int32_t count = at(counted, group, block);
      ASSERT_EQ(counts.count(int32_t(group), PageId(block)), count);
      if (count == 0) continue;
      held_bytes += layout.groups[group].block_bytes;
      if (count == at(all, group, block)) exclusive_bytes += layout.groups[group].block_bytes;
    }
  }
  ASSERT_EQ(counts.held_bytes(), held_bytes);
  ASSERT_EQ(counts.exclusive_bytes(), exclusive_bytes);
  if (exclusive_bytes == 0) return;
  ASSERT_GE(counts.exclusive_bytes(1), 1u);
  ASSERT_GE(counts.exclusive_bytes(exclusive_bytes), exclusive_bytes);
}

TEST(BlockCounts, CountWhatSequencesHold) {
  const ToyModel model({{ToyModel::recurrent()}, {ToyModel::window(40)}, {ToyModel::full()}});
  int32_t partly_held = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    ToyBench bench(model);
    std::list<Sequence> others, counted;
    BlockCounts counts;
    for (int32_t operation = 0; operation < 60; ++operation) {
      const uint32_t sort = uint32_t(random() % 4);
      if (sort == 0 && !counted.empty()) {
        counts.remove(counted.front());
        others.splice(others.end(), counted, counted.begin());
      } else if (sort == 1 && !others.empty()) {
        counts.add(others.front());
        counted.splice(counted.end(), others, others.begin());
      } else if (sort == 2 && !others.empty()) {
        others.pop_front();
      } else {
        Sequence sequence = counted.empty() ? bench.memory->new_sequence() : counted.back();
        const int32_t count = 1 + int32_t(random() % 70);
        if (sequence.length() + count > 400) continue;
        ASSERT_TRUE(bench.read(sequence, toy::tokens(count), {count}));
        others.push_back(std::move(sequence));
      }
      References counted_refs(bench.memory->layout().groups.size()), all = counted_refs;
      for (const Sequence& sequence : counted) Inspector::count_refs(sequence, counted_refs);
      for (const Sequence& sequence : counted) Inspector::count_refs(sequence, all);
      for (const Sequence& sequence : others) Inspector::count_refs(sequence, all);
      ASSERT_NO_FATAL_FAILURE(expect_counts(bench, counts, counted_refs, all)) << seed;
      partly_held += int32_t(counts.exclusive_bytes() < counts.held_bytes());
    }
  }
  EXPECT_GT(partly_held, 100);
}

TEST(BlockCounts, OfAnchorsAlone) {
  ToyBench bench(ToyModel({{ToyModel::recurrent()}, {ToyModel::full()}}));
  Sequence sequence = bench.memory->new_sequence();
  ASSERT_TRUE(bench.read(sequence, toy::tokens(100), {20, 50}));
  const Layout& layout = bench.memory->layout();
  const size_t state_bytes = layout.groups[size_t(layout.recurrent_group)].block_bytes;
  BlockCounts counts;
  counts.add_anchors(sequence);
  EXPECT_EQ(counts.held_bytes(), 2 * state_bytes);
  EXPECT_EQ(counts.exclusive_bytes(), 2 * state_bytes);
  // Counted as if these were all references that there are.
  EXPECT_EQ(bench.memory->anchor_exclusive_bytes(sequence, 0, &counts), state_bytes);
  const Sequence fork = sequence;
  EXPECT_EQ(counts.exclusive_bytes(), 0u);
  EXPECT_EQ(bench.memory->anchor_exclusive_bytes(sequence, 0), 0u);
  EXPECT_EQ(bench.memory->anchor_exclusive_bytes(sequence, 0, &counts), state_bytes);
  counts.remove_anchors(sequence);
  EXPECT_EQ(counts.held_bytes(), 0u);
}

}  // namespace
}  // namespace cairn::memory::block_counts_test
