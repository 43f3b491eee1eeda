// Maps beside what the memory itself counts, for toy models of all kinds of layers.
#include "memory/sequence_map.h"

#include <gtest/gtest.h>

#include "tests/memory/toy_chat.h"
#include "tests/memory/toy_families.h"

namespace cairn::memory::sequence_map_test {
namespace {

using toy::Chat;
using toy::families;
using toy::Family;
using toy::Host;
using toy::text;

constexpr size_t kAll = 1 << 20;

// Positions of pages; of states and rows how many there are.
int32_t covered(const GroupMap& map) {
  int32_t count = 0;
  for (const HeldRun& run : map.runs) count += run.end - run.begin;
  return count;
}

TEST(SequenceMap, HasWhatTheMemoryCounts) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    Chat chat(&host, text(100, 1));
    for (int32_t turn = 0; turn < 4; ++turn) {
      ASSERT_TRUE(chat.turn(text(60, 10 + turn), 24, 20 + turn));
      const std::vector<GroupUsage> usage = host.memory->usage(chat.sequence());
      const std::vector<GroupMap> maps = SequenceMap::of(chat.sequence(), kAll);
      ASSERT_EQ(maps.size(), usage.size());
      for (size_t group = 0; group < maps.size(); ++group) {
        EXPECT_TRUE(maps[group].is_whole);
        EXPECT_EQ(maps[group].blocks, usage[group].blocks);
        EXPECT_EQ(maps[group].shared, usage[group].shared);
        EXPECT_EQ(maps[group].bytes, usage[group].bytes);
        EXPECT_EQ(covered(maps[group]), usage[group].tokens);
        std::vector<int32_t> positions;
        for (const HeldRun& run : maps[group].runs) {
          if (run.begin == run.end) positions.push_back(run.begin);
        }
        EXPECT_EQ(positions, usage[group].positions);
      }
    }
  }
}

TEST(SequenceMap, ACopyIsOneReferenceMore) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    Chat chat(&host, text(100, 1));
    ASSERT_TRUE(chat.turn(text(60, 2), 24, 3));
    const std::vector<GroupMap> before = SequenceMap::of(chat.sequence(), kAll);
    const Sequence copy = chat.sequence();
    const std::vector<GroupMap> after = SequenceMap::of(chat.sequence(), kAll);
    ASSERT_EQ(before.size(), after.size());
    for (size_t group = 0; group < before.size(); ++group) {
      EXPECT_EQ(after[group].shared, after[group].blocks);
      ASSERT_EQ(before[group].runs.size(), after[group].runs.size());
      for (size_t run = 0; run < before[group].runs.size(); ++run) {
        const HeldRun& one = before[group].runs[run];
        // Anchors and the end may name one block: each of them is copied.
        EXPECT_GE(after[group].runs[run].other_refs, one.other_refs + 1);
        if (one.begin < one.end) {
          EXPECT_EQ(after[group].runs[run].other_refs, one.other_refs + 1);
        }
      }
    }
  }
}

TEST(SequenceMap, SaysWhereItIsNotAll) {
  Host host(toy::ToyModel({{toy::ToyModel::full()}}));
  Chat chat(&host, text(100, 1));
  ASSERT_TRUE(chat.turn(text(60, 2), 24, 3));
  const Sequence copy = chat.sequence();
  ASSERT_TRUE(chat.turn(text(200, 4), 24, 5));
  const GroupMap all = SequenceMap::of(chat.sequence(), kAll)[0];
  ASSERT_GT(all.runs.size(), 1u);
  const GroupMap cut = SequenceMap::of(chat.sequence(), 1)[0];
  EXPECT_FALSE(cut.is_whole);
  ASSERT_EQ(cut.runs.size(), 1u);
  EXPECT_EQ(cut.runs[0], all.runs[0]);
  EXPECT_EQ(cut.blocks, all.blocks);
  EXPECT_TRUE(SequenceMap::of(Sequence(), kAll).empty());
}

}  // namespace
}  // namespace cairn::memory::sequence_map_test
