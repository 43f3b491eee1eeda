// Who has what, what is forgotten, and that a table never has more than its room.
#include "route/prefix_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace cairn::route::prefix_table_test {
namespace {

using Prefixes = std::vector<PromptKeys::Prefix>;

Prefixes chain(uint64_t first, size_t count) {
  Prefixes prefixes;
  for (size_t index = 0; index < count; ++index) {
    prefixes.push_back({weight_of(first + index, 3), 100 * (index + 1)});
  }
  return prefixes;
}

size_t known_by(PrefixTable& table, const Prefixes& prefixes, uint16_t node) {
  for (const PrefixTable::Known& one : table.find(prefixes)) {
    if (one.node == node) return one.bytes;
  }
  return 0;
}

TEST(PrefixTable, KnowsTheLongestPrefixOfEach) {
  PrefixTable table(1024);
  const Prefixes all = chain(1, 5);
  table.add(all, 7);
  table.add(std::span(all).first(2), 3);
  EXPECT_EQ(known_by(table, all, 7), 500u);
  EXPECT_EQ(known_by(table, all, 3), 200u);
  EXPECT_EQ(known_by(table, all, 1), 0u);
  table.forget(std::span(all).subspan(3), 7);
  EXPECT_EQ(known_by(table, all, 7), 300u);
  table.forget(all, 3);
  EXPECT_EQ(table.find(all).size(), 1u);
  EXPECT_TRUE(table.find(chain(900, 3)).empty());
}

TEST(PrefixTable, TheLastFourHaveIt) {
  PrefixTable table(1024);
  const Prefixes one = chain(1, 1);
  for (uint16_t node = 0; node < 6; ++node) table.add(one, node);
  EXPECT_EQ(known_by(table, one, 0), 0u);
  EXPECT_EQ(known_by(table, one, 1), 0u);
  for (uint16_t node = 2; node < 6; ++node) EXPECT_EQ(known_by(table, one, node), 100u);
  table.add(one, 2);  // Again, and so it is the newest.
  table.add(one, 0);
  EXPECT_EQ(known_by(table, one, 3), 0u);
  EXPECT_EQ(known_by(table, one, 2), 100u);
}

// Of a full table everything is known after it has grown; and then there is room for more.
TEST(PrefixTable, KnowsWhatItKnewWhenItGrows) {
  PrefixTable table(64);
  for (uint64_t key = 1; key <= 200; ++key) table.add(chain(key * 100, 1), uint16_t(key % 7));
  EXPECT_GE(table.evicted_count(), 136u);
  std::vector<uint64_t> known;
  for (uint64_t key = 1; key <= 200; ++key) {
    if (known_by(table, chain(key * 100, 1), uint16_t(key % 7)) > 0) known.push_back(key);
  }
  ASSERT_GE(known.size(), 48u);
  const uint64_t evicted = table.evicted_count();
  table.grow(64);
  table.grow(4096);
  EXPECT_EQ(table.entry_count(), 4096u);
  for (const uint64_t key : known) {
    EXPECT_EQ(known_by(table, chain(key * 100, 1), uint16_t(key % 7)), 100u) << key;
  }
  for (uint64_t key = 201; key <= 700; ++key) table.add(chain(key * 100, 1), 3);
  EXPECT_EQ(table.evicted_count(), evicted);
  for (const uint64_t key : known) {
    EXPECT_EQ(known_by(table, chain(key * 100, 1), uint16_t(key % 7)), 100u) << key;
  }
}

TEST(PrefixTable, ForgetsWhatWasUsedLongestAgo) {
  PrefixTable table(64);
  for (uint64_t key = 1; key <= 1000; ++key) {
    table.add(chain(1, 1), 1);  // In use all the time.
    table.add(chain(key * 100, 1), 2);
  }
  EXPECT_EQ(known_by(table, chain(1, 1), 1), 100u);
  size_t known = 0;
  for (uint64_t key = 1; key <= 1000; ++key) known += table.find(chain(key * 100, 1)).size();
  EXPECT_LE(known, 63u);
  EXPECT_GE(known, 48u);  // All rows are in use.
}

}  // namespace
}  // namespace cairn::route::prefix_table_test
