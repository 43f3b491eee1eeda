// Both kinds of BPE on vocabularies that can be followed by hand.
#include "tokenize/bpe.h"

#include <gtest/gtest.h>

#include "tests/tokenize/small_vocabularies.h"
#include "tokenize/detokenizer.h"

namespace cairn::tokenize::bpe_test {
namespace {

using Ids = std::vector<int32_t>;

TEST(ByteLevelBpe, JoinsByRankThenFromTheLeft) {
  const auto tokenizer = build(byte_level_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("the the")), (Ids{257, 258}));
  EXPECT_EQ(ids(tokenizer->encode("aaa")), (Ids{259, 'a'}));
  EXPECT_EQ(ids(tokenizer->encode("aaaaa")), (Ids{260, 'a'}));
  // "b c" comes before "a b".
  EXPECT_EQ(ids(tokenizer->encode("abc")), (Ids{'a', 261}));
  EXPECT_EQ(ids(tokenizer->encode("\u00E9")), (Ids{263}));
  EXPECT_EQ(ids(tokenizer->encode("\xC3")), (Ids{0xC3}));
}

TEST(ByteLevelBpe, BytesThatAreNoTextAreWordsOfTheirOwn) {
  const auto tokenizer = build(byte_level_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("the\xFFthe\xC3")), (Ids{257, 0xFF, 257, 0xC3}));
  EXPECT_EQ(ids(tokenizer->encode(std::string_view("\0\x80", 2))), (Ids{0, 0x80}));
}

TEST(ByteLevelBpe, WholeWordsNeedNoMerges) {
  SmallVocabulary small = byte_level_vocabulary();
  const int32_t word = small.add("\u0120zebra");
  EXPECT_EQ(build(small)->encode(" zebra").size(), 6u);
  small.source.pre = "llama-bpe";
  EXPECT_EQ(ids(build(small)->encode(" zebra")), (Ids{word}));
}

// Some published vocabularies have a token twice: as characters and as bytes spell it. Both stand
// for the same text, and only the second can come out of merges of bytes.
TEST(ByteLevelBpe, TokensOutsideTheAlphabetOfBytesAreNeverUsed) {
  for (const bool is_first : {true, false}) {
    for (const char* pre : {"gpt-2", "llama-bpe"}) {
      SmallVocabulary small = byte_level_vocabulary();
      small.source.pre = pre;
      const std::string raw = "\u200D";  // Bytes E2 80 8D.
      if (is_first) small.add(raw);
      small.join("\u00E2", "\u0122");  // The letters of the bytes E2 and 80 …
      const int32_t spelled = small.join("\u00E2\u0122", "\u012F");  // … and 8D.
      const int32_t word = small.add("a" + raw);
      if (!is_first) small.add(raw);
      small.merge("a", raw);
      const auto tokenizer = build(small);
      EXPECT_EQ(ids(tokenizer->encode("\u200D")), (Ids{spelled})) << pre;
      EXPECT_EQ(ids(tokenizer->encode("a\u200D")), (Ids{'a', spelled})) << pre;
      for (const std::string& warning : tokenizer->warnings()) ADD_FAILURE() << warning;
      // What a model may say all the same is text.
      EXPECT_EQ(tokenizer->piece(Token(word)), "a\u200D");
    }
  }
}

// A raw byte is not the token of that byte either.
TEST(ByteLevelBpe, ARawLineFeedIsNotTheTokenOfItsByte) {
  SmallVocabulary small;
  small.source.model = "gpt2";
  small.source.pre = "gpt-2";
  small.add("\n");
  const int32_t spelled = small.add("\u010A");
  EXPECT_EQ(ids(build(small)->encode("\n")), (Ids{spelled}));
}

TEST(ByteLevelBpe, TheBosOfAPretokenizerIsAdded) {
  SmallVocabulary small = byte_level_vocabulary();
  EXPECT_FALSE(build(small)->adds_bos());
  small.source.pre = "llama-bpe";
  EXPECT_TRUE(build(small)->adds_bos());
  small.source.add_bos = false;
  EXPECT_FALSE(build(small)->adds_bos());
}

TEST(ByteLevelBpe, LongWordsEqualShortOnes) {
  const auto tokenizer = build(byte_level_vocabulary());
  // No join spans "x": so each part is the same alone and in a long word.
  std::string text;
  Ids expected;
  for (int i = 0; i < 5000; ++i) {
    text += "aaaabcxthex";
    for (const int32_t id : {260, 261, int32_t('x'), 257, int32_t('x')}) expected.push_back(id);
  }
  EXPECT_EQ(ids(tokenizer->encode(text)), expected);
}

TEST(CharacterBpe, SpacesAreCharactersAndTheRestIsBytes) {
  const auto tokenizer = build(gemma4_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("b ab")), (Ids{261, 264}));
  EXPECT_EQ(ids(tokenizer->encode("ab ab")), (Ids{265}));
  EXPECT_EQ(ids(tokenizer->encode("ab", {.add_special = true})), (Ids{2, 263}));
  EXPECT_EQ(ids(tokenizer->encode("\u00E9")), (Ids{3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(ids(tokenizer->encode("a\xFF")), (Ids{260, 3 + 0xFF}));
  EXPECT_EQ(tokenizer->piece(Token(264)), " ab");
}

TEST(CharacterBpe, Gemma4BeginsWithBosWhateverTheFileSays) {
  SmallVocabulary small = gemma4_vocabulary();
  small.source.add_bos = false;
  const auto tokenizer = build(small);
  EXPECT_EQ(ids(tokenizer->encode("a", {.add_special = true})), (Ids{2, 260}));
  ASSERT_EQ(tokenizer->warnings().size(), 1u);
  EXPECT_NE(tokenizer->warnings()[0].find("add_bos_token"), std::string::npos);
}

TEST(CharacterBpe, RunsOfLineFeedsAreTokensIfTheyCan) {
  const auto tokenizer = build(gemma4_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("a\n\nb")), (Ids{260, 266, 261}));
  EXPECT_EQ(ids(tokenizer->encode("\n\n\n")), (Ids{267}));
  EXPECT_EQ(ids(tokenizer->encode("\n\n\n\n")), (Ids{266, 266}));
}

TEST(CharacterBpe, ForgetsNoByte) {
  const auto tokenizer = build(gemma4_vocabulary());
  std::mt19937 random(37);
  for (int round = 0; round < 500; ++round) {
    std::string text = random_text(random, random() % 100, round % 2 == 0);
    // The character that stands for the space reads as one.
    std::string expected;
    append_unescaped(text, expected);
    EXPECT_EQ(decode(*tokenizer, tokenizer->encode(text)), expected);
  }
}

}  // namespace
}  // namespace cairn::tokenize::bpe_test
