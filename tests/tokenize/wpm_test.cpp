// WordPiece by hand.
#include "tokenize/wpm.h"

#include <gtest/gtest.h>

#include "tests/tokenize/small_vocabularies.h"

namespace cairn::tokenize::wpm_test {
namespace {

using Ids = std::vector<int32_t>;

TEST(Wpm, TakesTheLongestPiecesOfEachWord) {
  const auto tokenizer = build(wpm_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("unaffordable")), (Ids{4, 5, 6}));
  EXPECT_EQ(ids(tokenizer->encode("un, unable")), (Ids{4, 8, 4, 6}));
  EXPECT_EQ(ids(tokenizer->encode("un", {.add_special = true})), (Ids{2, 4, 3}));
  EXPECT_EQ(ids(tokenizer->encode("", {.add_special = true})), (Ids{2, 3}));
}

TEST(Wpm, AWordIsKnownOrUnknownAsAWhole) {
  const auto tokenizer = build(wpm_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("unx un xun")), (Ids{1, 4, 1}));
  EXPECT_EQ(ids(tokenizer->encode("able")), (Ids{1}));  // No word begins so.
}

TEST(Wpm, FoldsAndCuts) {
  const auto tokenizer = build(wpm_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("CAF\u00C9,cafe\u0301")), (Ids{7, 8, 7}));
  EXPECT_EQ(ids(tokenizer->encode("u\u200Bn\x01")), (Ids{4}));
  EXPECT_EQ(ids(tokenizer->encode("un\u6F22un")), (Ids{4, 11, 4}));
  EXPECT_EQ(ids(tokenizer->encode("Stra\u00DFes")), (Ids{12, 13}));
  EXPECT_EQ(ids(tokenizer->encode("un\xFF un\xC3")), (Ids{4, 4}));
  SmallVocabulary cased = wpm_vocabulary();
  cased.source.lowercase = false;
  EXPECT_EQ(ids(build(cased)->encode("Un un")), (Ids{1, 4}));
}

TEST(Wpm, KeepsLettersOfEveryScript) {
  SmallVocabulary small = wpm_vocabulary();
  small.add("\u2581\u1100");  // 14: the first letter of U+AC00, …
  small.add("\u1161");        // 15: … its vowel, …
  small.add("\u11A8");        // 16: … and what U+AC01 ends in.
  small.add("\u2581\u0939");  // 17
  small.add("\u093F");        // 18: a vowel sign.
  const auto tokenizer = build(small);
  EXPECT_EQ(ids(tokenizer->encode("\uAC00 \uAC01")), (Ids{14, 15, 14, 15, 16}));
  EXPECT_EQ(ids(tokenizer->encode("\u0939\u093F\u094D")), (Ids{17, 18}));
}

TEST(Wpm, ControlsThatAreSpacesJoin) {
  const auto tokenizer = build(wpm_vocabulary());
  for (const char* text : {"un\fable", "un\vable", "un\u0085able"}) {
    EXPECT_EQ(ids(tokenizer->encode(text)), (Ids{4, 6}));
  }
  EXPECT_EQ(ids(tokenizer->encode("un\nun\tun\u2028un")), (Ids{4, 4, 4, 4}));
}

TEST(Wpm, LongWordsAreUnknown) {
  const auto tokenizer = build(wpm_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("a" + std::string(99, 'b'))).size(), 100u);
  EXPECT_EQ(ids(tokenizer->encode("a" + std::string(100, 'b'))), (Ids{1}));
  EXPECT_EQ(ids(tokenizer->encode(std::string(3'000'000, 'b'))), (Ids{1}));
}

TEST(Wpm, SpecialTokensInText) {
  const auto tokenizer = build(wpm_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("un[SEP]un", {.parse_special = true})), (Ids{4, 3, 4}));
  EXPECT_EQ(tokenizer->piece(Token(4)), " un");
}

}  // namespace
}  // namespace cairn::tokenize::wpm_test
