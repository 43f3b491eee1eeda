// Cutting a text where no token can span must not change its tokens.
#include "tokenize/tokenizer_words.h"

#include <gtest/gtest.h>

#include "tests/tokenize/small_vocabularies.h"
#include "tokenize/bpe_merges.h"

namespace cairn::tokenize::tokenizer_words_test {
namespace {

TEST(CharacterPairs, KnowsThePairsOfTokens) {
  CharacterPairs pairs;
  pairs.add("ab\u00E9");
  pairs.add("\xFFz");
  EXPECT_TRUE(pairs.may_join('a', 'b'));
  EXPECT_TRUE(pairs.may_join('b', U'\u00E9'));
  EXPECT_TRUE(pairs.may_join(0x110000 + 0xFF, 'z'));
  size_t joined_count = 0;
  for (char32_t left = 0; left < 300; ++left) {
    for (char32_t right = 0; right < 300; ++right) joined_count += pairs.may_join(left, right);
  }
  EXPECT_LT(joined_count, 10u);  // Few pairs only seem to be there.
}

TEST(CharacterWords, CutsChangeNothing) {
  const SmallVocabulary small = gemma4_vocabulary();
  auto vocabulary = Vocabulary::build(small.source, Vocabulary::Spelling::spaced);
  ASSERT_TRUE(vocabulary);
  const BpeMerges merges =
      BpeMerges::build(small.source.merges, Vocabulary::Spelling::spaced, *vocabulary);
  CharacterPairs known;
  add_all_pairs(*vocabulary, known);
  CharacterPairs every;  // All pairs that the texts below can have: nothing is ever cut.
  const std::string_view letters[] = {"a", "b", " ", "\n", "\u00E9"};
  for (const std::string_view left : letters) {
    for (const std::string_view right : letters) every.add(std::string(left).append(right));
  }
  const auto find = [&](std::string_view, const Symbol& left, const Symbol& right) {
    return merges.find(left.token, right.token);
  };
  std::mt19937 random(47);
  for (const size_t length : {10, 1000, 20'000}) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += letters[random() % 5];
    std::vector<Token> cut, whole;
    CharacterWords(*vocabulary, known, text.size()).encode(text, find, cut);
    CharacterWords(*vocabulary, every, 0).encode(text, find, whole);
    EXPECT_EQ(cut, whole);
  }
}

TEST(AppendSymbol, FallsBackToBytesThenToUnknown) {
  SmallVocabulary small = spm_vocabulary();
  small.source.unk = 0;
  auto vocabulary = Vocabulary::build(small.source, Vocabulary::Spelling::spaced);
  ASSERT_TRUE(vocabulary);
  std::vector<Token> out;
  append_symbol(*vocabulary, "x\u00E9", {1, 3, kNoToken}, out);
  append_symbol(*vocabulary, "x\u00E9", {1, 3, 7}, out);
  EXPECT_EQ(ids(out), (std::vector<int32_t>{3 + 0xC3, 3 + 0xA9, 7}));
  // One byte is missing: the whole character is unknown.
  small.source.tokens[3 + 0xA9] = "gone";
  small.source.types[3 + 0xA9] = int32_t(TokenType::normal);
  vocabulary = Vocabulary::build(small.source, Vocabulary::Spelling::spaced);
  ASSERT_TRUE(vocabulary);
  out.clear();
  append_symbol(*vocabulary, "x\u00E9", {1, 3, kNoToken}, out);
  EXPECT_EQ(ids(out), (std::vector<int32_t>{0}));
}

}  // namespace
}  // namespace cairn::tokenize::tokenizer_words_test
