// The table of merges: what it finds, what it leaves out and says so.
#include "tokenize/bpe_merges.h"

#include <gtest/gtest.h>

#include "tests/tokenize/small_vocabularies.h"

namespace cairn::tokenize::bpe_merges_test {
namespace {

TEST(BpeMerges, FindsTheJoinAndItsRank) {
  const SmallVocabulary small = byte_level_vocabulary();
  auto vocabulary = Vocabulary::build(small.source, Vocabulary::Spelling::byte_level);
  ASSERT_TRUE(vocabulary);
  const BpeMerges merges =
      BpeMerges::build(small.source.merges, Vocabulary::Spelling::byte_level, *vocabulary);
  EXPECT_EQ(merges.find('t', 'h').token, 256);
  EXPECT_EQ(merges.find('t', 'h').priority, 0u);
  EXPECT_EQ(merges.find(' ', 257).token, 258);
  EXPECT_EQ(merges.find(0xC3, 0xA9).token, 263);
  EXPECT_EQ(merges.find('h', 't').priority, kNeverJoined);
  EXPECT_EQ(merges.find(kNoToken, 'h').priority, kNeverJoined);
  EXPECT_TRUE(vocabulary->warnings().empty());
}

TEST(BpeMerges, TheFirstOfEqualMergesCountsAndBadOnesAreReported) {
  SmallVocabulary small = byte_level_vocabulary();
  small.merge("t", "h");
  small.merge("zz", "z");
  small.source.merges.push_back("nospace");
  auto vocabulary = Vocabulary::build(small.source, Vocabulary::Spelling::byte_level);
  ASSERT_TRUE(vocabulary);
  const BpeMerges merges =
      BpeMerges::build(small.source.merges, Vocabulary::Spelling::byte_level, *vocabulary);
  EXPECT_EQ(merges.find('t', 'h').priority, 0u);
  ASSERT_EQ(vocabulary->warnings().size(), 1u);
  EXPECT_NE(vocabulary->warnings()[0].find("2 of 11 join"), std::string::npos)
      << vocabulary->warnings()[0];
  EXPECT_NE(vocabulary->warnings()[0].find("zz z"), std::string::npos);
}

TEST(BpeMerges, NoMergesAreATableToo) {
  const BpeMerges merges;
  EXPECT_EQ(merges.find(1, 2).priority, kNeverJoined);
}

}  // namespace
}  // namespace cairn::tokenize::bpe_merges_test
