// SPM by hand: scores, spaces, bytes.
#include "tokenize/spm.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/tokenize/small_vocabularies.h"
#include "tokenize/detokenizer.h"

namespace cairn::tokenize::spm_test {
namespace {

using Ids = std::vector<int32_t>;
constexpr int32_t kSpace = 259, kH = 260, kL = 262, kO = 263, kHe = 264, kLl = 265;
constexpr int32_t kSpaceHe = 266, kLo = 268, kTwoSpaces = 269, kEAcute = 270;

TEST(Spm, TheHighestScoreIsJoinedFirst) {
  const auto tokenizer = build(spm_vocabulary());
  // " hello": "he", then "ll", then " he"; " hell" is a token, made of " he" and "ll".
  EXPECT_EQ(ids(tokenizer->encode("hello")), (Ids{267, kO}));
  EXPECT_EQ(ids(tokenizer->encode("heo")), (Ids{kSpaceHe, kO}));
  EXPECT_EQ(ids(tokenizer->encode("lo")), (Ids{kSpace, kLo}));
  EXPECT_EQ(ids(tokenizer->encode("  l")), (Ids{kTwoSpaces, kSpace, kL}));
  EXPECT_EQ(ids(tokenizer->encode("")), Ids{});
}

TEST(Spm, WhatIsNoTokenBecomesBytes) {
  const auto tokenizer = build(spm_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("\u00E9\u00E8")), (Ids{kSpace, kEAcute, 3 + 0xC3, 3 + 0xA8}));
  EXPECT_EQ(ids(tokenizer->encode("\xFFh")), (Ids{kSpace, 3 + 0xFF, kH}));
  EXPECT_EQ(ids(tokenizer->encode("\n")), (Ids{kSpace, 3 + 0x0A}));
}

TEST(Spm, WithoutByteTokensItIsUnknown) {
  SmallVocabulary small;
  small.source.model = "llama";
  small.add("<unk>", TokenType::unknown);
  small.add("<s>", TokenType::control);
  small.add("</s>", TokenType::control);
  small.add("\u2581");
  small.add("h");
  const auto tokenizer = build(small);
  EXPECT_EQ(ids(tokenizer->encode("hx\u00E9h")), (Ids{3, 4, 0, 0, 4}));
}

TEST(Spm, SpacePrefixAtTheStartAndBehindSpecialTokens) {
  SmallVocabulary small = spm_vocabulary();
  const auto with = build(small);
  EXPECT_EQ(ids(with->encode("he<s>he", {.add_special = true, .parse_special = true})),
            (Ids{1, kSpaceHe, 1, kSpaceHe}));
  small.source.add_space_prefix = false;
  EXPECT_EQ(ids(build(small)->encode("he<s>he", {.parse_special = true})), (Ids{kHe, 1, kHe}));
}

TEST(Spm, NoSpaceIsPutIntoAText) {
  const auto tokenizer = build(spm_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("he", {.goes_on = true})), Ids{kHe});
  EXPECT_EQ(ids(tokenizer->encode("he<s>he", {.parse_special = true, .goes_on = true})),
            (Ids{kHe, 1, kSpaceHe}));
}

TEST(Spm, StrangeScoresKeepAnOrder) {
  SmallVocabulary small = spm_vocabulary();
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()};
  for (size_t id = 259; id < small.source.scores.size(); ++id) {
    small.source.scores[id] = odd[id % 3];
  }
  const auto tokenizer = build(small);
  std::mt19937 random(41);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "hello "[random() % 6];
    EXPECT_EQ(decode(*tokenizer, tokenizer->encode(text), {.is_whole_text = true}), text);
  }
  // Infinity is above all; NaN, which says nothing, is below all.
  small.source.scores[kHe] = -std::numeric_limits<float>::infinity();
  small.source.scores[kLl] = std::numeric_limits<float>::quiet_NaN();
  small.source.scores[kLo] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ids(build(small)->encode("llo")), (Ids{kSpace, kL, kLo}));
}

TEST(Spm, ForgetsNoByte) {
  const auto tokenizer = build(spm_vocabulary());
  std::mt19937 random(43);
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_text(random, random() % 100, round % 2 == 0);
    std::string expected;
    append_unescaped(text, expected);
    EXPECT_EQ(decode(*tokenizer, tokenizer->encode(text), {.is_whole_text = true}), expected);
  }
}

TEST(Spm, MissingScoresAreReported) {
  SmallVocabulary small = spm_vocabulary();
  small.source.scores.clear();
  const auto tokenizer = build(small);
  ASSERT_EQ(tokenizer->warnings().size(), 1u);
  EXPECT_NE(tokenizer->warnings()[0].find("tokenizer.ggml.scores"), std::string::npos);
}

}  // namespace
}  // namespace cairn::tokenize::spm_test
