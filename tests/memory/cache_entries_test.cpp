// Entries with what is counted and indexed of them.
#include "memory/cache/cache_entries.h"

#include <gtest/gtest.h>

#include "tests/memory/toy_bench.h"

namespace cairn::memory::cache_entries_test {
namespace {

using toy::tokens;
using toy::ToyBench;
using toy::ToyModel;

class Entries : public ::testing::Test {
 protected:
  Sequence read(int32_t count, std::vector<int32_t> captures) {
    Sequence sequence = bench.memory->new_sequence();
    EXPECT_TRUE(bench.read(sequence, tokens(count), std::move(captures)));
    return sequence;
  }
  size_t used_bytes() const { return bench.memory->usage().used_bytes(); }

  ToyBench bench{ToyModel({{ToyModel::recurrent()}, {ToyModel::full()}})};
  CacheEntries entries{bench.memory.get()};
};

TEST_F(Entries, ComeAndGo) {
  CacheEntry& one = entries.add(read(100, {30}), {{30, AnchorKind::message_start}}, false);
  CacheEntry& other = entries.add(read(50, {}), {}, false);
  EXPECT_LT(one.id, other.id);
  EXPECT_LT(one.last_use, other.last_use);
  EXPECT_EQ(one.places.size(), 1u);
  EXPECT_EQ(entries.evictable().exclusive_bytes(), used_bytes());
  EXPECT_EQ(PrefixTree::neighbour(other).entry, &one);
  EXPECT_EQ(entries.remove(one).length(), 100);
  EXPECT_EQ(entries.all().size(), 1u);
  EXPECT_EQ(PrefixTree::neighbour(other).entry, nullptr);
  EXPECT_EQ(entries.evictable().exclusive_bytes(), used_bytes());
}

TEST_F(Entries, ChangeBetweenUnlinkAndLink) {
  CacheEntry& entry = entries.add(read(100, {30}), {}, false);
  const Anchor anchor = entry.sequence.anchors().front();
  EXPECT_EQ(entries.holders(anchor, 9).size(), 1u);
  entries.unlink(entry);
  ASSERT_TRUE(bench.memory->drop_anchor(entry.sequence, 0));
  entries.link(entry);
  EXPECT_TRUE(entries.holders(anchor, 9).empty());
  const std::vector<Token> prompt = tokens(40);
  EXPECT_EQ(entries.tree().match(prompt, Variant::plain, false).resume, 0);
}

TEST_F(Entries, HoldersOfAnAnchorAreItsForks) {
  const Sequence parent = read(60, {20, 40});
  std::vector<CacheEntry*> forks;
  for (int32_t index = 0; index < 5; ++index) {
    Sequence fork = bench.memory->at(parent, 40).value();
    ASSERT_TRUE(bench.read(fork, tokens(10, 100 * index)));
    forks.push_back(&entries.add(std::move(fork), {}, index == 4));
  }
  entries.add(read(60, {20, 40}), {}, false);  // The same tokens in blocks of its own.
  const Anchor& anchor = parent.anchors()[1];
  EXPECT_EQ(entries.holders(anchor, 9), forks);
  EXPECT_EQ(entries.holders(anchor, 3).size(), 3u);
  entries.remove(*forks[1]);
  forks.erase(forks.begin() + 1);
  EXPECT_EQ(entries.holders(anchor, 9), forks);
}

TEST_F(Entries, PinnedOnesAreCountedApart) {
  entries.add(read(100, {30}), {}, true);
  EXPECT_EQ(entries.evictable().held_bytes(), 0u);
  EXPECT_EQ(entries.pinned().held_bytes(), used_bytes());
}

TEST_F(Entries, AnActiveSequenceHasAnchorsAlone) {
  CacheEntry active;
  active.sequence = read(100, {30});
  entries.enter(active);
  EXPECT_EQ(entries.holders(active.sequence.anchors().front(), 9),
            std::vector<CacheEntry*>{&active});
  const Layout& layout = bench.memory->layout();
  EXPECT_EQ(entries.evictable().held_bytes(),
            layout.groups[size_t(layout.recurrent_group)].block_bytes);
  EXPECT_EQ(entries.tree().match(tokens(40), Variant::plain, false).shared, 0);
  EXPECT_TRUE(entries.all().empty());
  entries.leave(active);
  EXPECT_EQ(entries.evictable().held_bytes(), 0u);
  EXPECT_EQ(active.sequence.length(), 100);
}

}  // namespace
}  // namespace cairn::memory::cache_entries_test
