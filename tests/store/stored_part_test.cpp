// What a store has of tokens, beside what the memory that wrote it held; of texts that part from
// it; of several sequences together.
#include "store/stored_part.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "memory/sequence_map.h"
#include "tests/store/store_bench.h"

namespace cairn::store::stored_part_test {
namespace {

using Runs = std::vector<PositionRun>;

// As memory has it: neighbouring pages become one run.
std::vector<Runs> held_by(const memory::Sequence& sequence) {
  std::vector<Runs> groups;
  for (const memory::GroupMap& group : memory::SequenceMap::of(sequence, 1 << 20)) {
    Runs& runs = groups.emplace_back();
    for (const memory::HeldRun& run : group.runs) {
      const bool goes_on = run.begin < run.end && !runs.empty() && runs.back().end == run.begin;
      if (goes_on) {
        runs.back().end = run.end;
      } else {
        runs.push_back({run.begin, run.end});
      }
    }
  }
  return groups;
}

StoredPart part_of(toy::StoreBench& bench, std::span<const Token> tokens) {
  return bench.store->part_of(toy::kFingerprint, bench.here.memory->layout(), tokens);
}

memory::Sequence read(toy::StoreBench& bench, const std::vector<Token>& text) {
  memory::Sequence sequence = bench.here.memory->new_sequence(toy::kVariant);
  EXPECT_TRUE(bool(bench.here.read(sequence, text, {20, 50})));
  return sequence;
}

TEST(StoredPart, IsWhatMemoryHeldWhenItWasWritten) {
  for (const memory::toy::ToyModel& model : toy::store_models()) {
    toy::StoreBench bench(model);
    const memory::Sequence sequence = read(bench, memory::toy::tokens(150));
    EXPECT_TRUE(part_of(bench, sequence.tokens()).runs.empty());
    const uint64_t changes = bench.store->stats().changes;
    ASSERT_TRUE(bool(bench.write(sequence)));
    EXPECT_GT(bench.store->stats().changes, changes);
    for (const bool is_reopened : {false, true}) {
      if (is_reopened) bench.reopen();
      const StoredPart part = part_of(bench, sequence.tokens());
      EXPECT_EQ(part.length, 150);
      EXPECT_TRUE(part.has_all(150));
      EXPECT_EQ(part.runs, held_by(sequence));
    }
  }
}

TEST(StoredPart, EndsWhereTextsPart) {
  toy::StoreBench bench(toy::mixed_model());
  const memory::Sequence sequence = read(bench, memory::toy::tokens(150));
  ASSERT_TRUE(bool(bench.write(sequence)));
  std::vector<Token> other = toy::tokens_of(sequence);
  other.resize(100);
  other.resize(200, Token(7));
  const StoredPart part = part_of(bench, other);
  EXPECT_EQ(part.length, 96);  // Three links of 32.
  EXPECT_FALSE(part.has_all(200));
  bool has_any = false;
  for (const Runs& runs : part.runs) {
    for (const PositionRun& run : runs) {
      EXPECT_LE(run.end, 96);
      has_any = true;
    }
  }
  EXPECT_TRUE(has_any);
  // Longer than what is stored: all of that.
  std::vector<Token> longer = toy::tokens_of(sequence);
  longer.resize(170, Token(7));
  EXPECT_EQ(part_of(bench, longer).length, 150);
  EXPECT_EQ(part_of(bench, longer).runs, held_by(sequence));
  EXPECT_TRUE(part_of(bench, std::vector<Token>(100, Token(3))).runs.empty());
  EXPECT_TRUE(bench.store
                  ->part_of(Sha256().add("another model").finish(), bench.here.memory->layout(),
                            sequence.tokens())
                  .runs.empty());
}

TEST(StoredPart, RunsOfSeveralBecomeOne) {
  memory::Layout layout;
  layout.groups = {{.kind = memory::GroupKind::full}, {.kind = memory::GroupKind::recurrent}};
  layout.recurrent_group = 1;
  const int32_t page = layout.groups[0].page_tokens();
  const auto entry = [&](int32_t first, int32_t count, std::vector<int32_t> states) {
    return IndexEntry{.length = 10 * page,
                      .pages = {{.group = 0, .pages = {.first = first, .count = count}}},
                      .states = std::move(states)};
  };
  StoredPart part;
  part.add(entry(6, 2, {5, 9 * page}), 8 * page, layout);
  part.add(entry(0, 2, {5, 7}), 3 * page, layout);
  EXPECT_EQ(part.length, 8 * page);
  EXPECT_EQ(part.runs[0], (Runs{{0, 2 * page}, {6 * page, 8 * page}}));
  EXPECT_EQ(part.runs[1], (Runs{{5, 5}, {7, 7}}));
  part.add(entry(1, 5, {6}), 7 * page - 1, layout);
  EXPECT_EQ(part.runs[0], (Runs{{0, 8 * page}}));
  EXPECT_EQ(part.runs[1], (Runs{{5, 5}, {6, 6}, {7, 7}}));
  part.add(entry(9, 1, {}), 9 * page, layout);  // Behind what is common.
  EXPECT_EQ(part.runs[0], (Runs{{0, 8 * page}}));
}

}  // namespace
}  // namespace cairn::store::stored_part_test
