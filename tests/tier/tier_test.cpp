// What readers and writers of a tier know together.
#include "tier/tier.h"

#include <gtest/gtest.h>

#include <set>

namespace cairn::test::tier_test {
namespace {

using tier::Outcome;
using tier::Tier;

class TierTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Tier> open() {
    return Tier::open(
               {.url = "unix:/nobody/is/there", .times = {.kept = std::chrono::seconds(100)}})
        .value();
  }
  static Sha256Digest name(uint8_t number) { return {number}; }
};

TEST_F(TierTest, WhatComesTogetherDoesNotGoTogether) {
  const auto tier = open();
  std::set<long> times;
  for (int draw = 0; draw < 200; ++draw) {
    const long ms = std::stol(tier->kept_ms());
    EXPECT_GE(ms, 90'000);
    EXPECT_LE(ms, 110'000);
    times.insert(ms);
  }
  EXPECT_GT(times.size(), 100u);
  EXPECT_GT(*times.rbegin() - *times.begin(), 10'000);
}

TEST_F(TierTest, ThreeWrongRecordsEndReading) {
  const auto tier = open();
  tier->note_bad(name(1), "a bit");
  tier->note_bad(name(2), "a bit");
  EXPECT_TRUE(tier->reads().admits());
  tier->note_bad(name(3), "a bit");
  EXPECT_FALSE(tier->reads().admits());
  EXPECT_TRUE(tier->writes().admits());
  EXPECT_TRUE(tier->stats().is_open);
  EXPECT_EQ(tier->stats().refused_records, 3u);
  EXPECT_TRUE(tier->take_bad(name(1)));
  EXPECT_FALSE(tier->take_bad(name(1)));
  EXPECT_FALSE(tier->take_bad(name(4)));
}

TEST_F(TierTest, AWrongSequenceEndsReading) {
  const auto tier = open();
  tier->distrust();
  EXPECT_FALSE(tier->reads().admits());
}

// The seal depends on the name and on each byte, and not on how these lie.
TEST_F(TierTest, SealsAreOfNamesAndBytes) {
  const auto tier = open();
  const std::vector<std::byte> bytes(100, std::byte(7));
  std::vector<std::byte> other = bytes;
  other[99] = std::byte(8);
  const auto seal = [&](uint8_t number, std::span<const std::byte> text) {
    return tier->seal_of(name(number), std::span(&text, 1));
  };
  const std::span<const std::byte> all = bytes;
  const std::span<const std::byte> parts[] = {all.first(33), all.subspan(33)};
  EXPECT_EQ(tier->seal_of(name(1), parts), seal(1, bytes));
  EXPECT_NE(seal(1, bytes), seal(2, bytes));
  EXPECT_NE(seal(1, bytes), seal(1, other));
}

TEST_F(TierTest, CountsWhatBecameOfLookUps) {
  const auto tier = open();
  tier->count(Outcome::late);
  tier->count(Outcome::late);
  tier->count(&tier::TierStats::read_bytes, 7);
  EXPECT_EQ(tier->stats().outcomes[size_t(Outcome::late)], 2u);
  EXPECT_EQ(tier->stats().read_bytes, 7u);
}

}  // namespace
}  // namespace cairn::test::tier_test
