// What a vocabulary accepts, refuses and lives with.
#include "tokenize/vocabulary.h"

#include <gtest/gtest.h>

#include <ctime>

#include "tests/tokenize/small_vocabularies.h"

namespace cairn::tokenize::vocabulary_test {
namespace {

using Spelling = Vocabulary::Spelling;

void expect_refused(const SmallVocabulary& small, std::string_view part) {
  auto built = Tokenizer::build(small.source);
  ASSERT_FALSE(built) << part;
  EXPECT_NE(built.error().message.find(part), std::string::npos) << built.error().message;
}

TEST(Vocabulary, KnowsPiecesWordsAndBytes) {
  const SmallVocabulary small = byte_level_vocabulary();
  auto vocabulary = Vocabulary::build(small.source, Spelling::byte_level);
  ASSERT_TRUE(vocabulary) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->piece(Token(258)), " the");
  EXPECT_EQ(vocabulary->piece(Token(263)), "\xC3\xA9");
  EXPECT_EQ(vocabulary->piece(Token(0xFF)), "\xFF");
  EXPECT_EQ(vocabulary->piece(Token(265)), "<|im_end|>");
  EXPECT_EQ(vocabulary->find_word(" the"), 258);
  EXPECT_EQ(vocabulary->find_word("nothing"), kNoToken);
  EXPECT_EQ(vocabulary->byte_token(0x80), 0x80);
  EXPECT_EQ(vocabulary->find("<|start|>"), Token(264));
  EXPECT_EQ(vocabulary->find("\xFF"), Token(0xFF));
  EXPECT_EQ(vocabulary->find("nothing"), std::nullopt);
  EXPECT_TRUE(vocabulary->warnings().empty());
}

TEST(Vocabulary, NoWordSpellsAControlToken) {
  const SmallVocabulary small = byte_level_vocabulary();
  auto vocabulary = Vocabulary::build(small.source, Spelling::byte_level);
  ASSERT_TRUE(vocabulary);
  EXPECT_EQ(vocabulary->find_word("<|start|>"), kNoToken);
  EXPECT_EQ(vocabulary->find_word("<tool>"), 266);
}

TEST(Vocabulary, FindsTheEndsOfAnAnswer) {
  const auto tokenizer = build(byte_level_vocabulary());
  EXPECT_TRUE(tokenizer->is_end_of_generation(Token(265)));
  EXPECT_FALSE(tokenizer->is_end_of_generation(Token(264)));
  EXPECT_EQ(tokenizer->special_ids().eot, Token(265));

  SmallVocabulary harmony = byte_level_vocabulary();
  const int32_t end = harmony.add("<|end|>", TokenType::control);
  const int32_t back = harmony.add("<|return|>", TokenType::control);
  const int32_t call = harmony.add("<|call|>", TokenType::user_defined);
  const auto other = build(harmony);
  EXPECT_FALSE(other->is_end_of_generation(Token(end)));
  EXPECT_TRUE(other->is_end_of_generation(Token(back)));
  EXPECT_TRUE(other->is_end_of_generation(Token(call)));
  EXPECT_TRUE(other->is_control(Token(call)));  // What ends an answer is never text.
}

TEST(Vocabulary, CountsMustAgree) {
  SmallVocabulary types = byte_level_vocabulary();
  types.source.types.pop_back();
  expect_refused(types, "token_type: expected 269 entries, one a token, found 268");
  SmallVocabulary scores = byte_level_vocabulary();
  scores.source.scores.push_back(0);
  expect_refused(scores, "scores: expected 269 entries, one a token, found 270");
  SmallVocabulary empty;
  empty.source.model = "gpt2";
  expect_refused(empty, "tokenizer.ggml.tokens: expected 1 to");
}

TEST(Attack6, MalformedByteTokens) {
  for (const char* bad :
       {"<0x-1>", "<0x0g>", "<0x0a>", "<0x 1>", "<0x+1>", "<0x001>", "<0x1>", ""}) {
    SmallVocabulary small = spm_vocabulary();
    small.source.tokens[3 + 0x41] = bad;
    expect_refused(small, "token 68 is a byte: expected <0x00> to <0xFF>, found");
  }
  SmallVocabulary twice = spm_vocabulary();
  twice.source.tokens[3 + 0x41] = "<0x42>";
  expect_refused(twice, "byte token <0x42>: expected once, found as tokens 68 and 69");
}

TEST(Attack6, SpecialIdsOutsideTheVocabulary) {
  SmallVocabulary small = byte_level_vocabulary();
  for (const int64_t bad : {int64_t(269), int64_t(-1), int64_t(0xFFFFFFFF), INT64_MAX, INT64_MIN}) {
    small.source.bos = bad;
    expect_refused(small, fmt::format("bos_token_id: expected an id below 269, found {}", bad));
  }
  small.source.bos = 264;
  small.source.eos = 269;
  expect_refused(small, "eos_token_id: expected an id below 269, found 269");
  // Honest files have padding outside; nothing uses it.
  small.source.eos = 265;
  small.source.pad = 269;
  const auto tokenizer = build(small);
  EXPECT_EQ(tokenizer->special_ids().pad, std::nullopt);
  ASSERT_EQ(tokenizer->warnings().size(), 1u);
  EXPECT_NE(tokenizer->warnings()[0].find("padding_token_id"), std::string::npos);
}

TEST(Attack6, AMillionMergesInACircle) {
  SmallVocabulary small = byte_level_vocabulary();
  // Every rotation of the same letters, again and again; nothing of it is in the vocabulary but a
  // few: joins only ever make longer tokens, so that a circle cannot close.
  const std::string_view rotations[] = {small.keep("a b"),  small.keep("b a"),   small.keep("ab a"),
                                        small.keep("a ba"), small.keep("aa aa"), small.keep("x")};
  for (size_t i = 0; i < 1'000'000; ++i) small.source.merges.push_back(rotations[i % 6]);
  const std::clock_t start = std::clock();  // Work, not waiting for a busy machine.
  const auto tokenizer = build(small);
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 20);  // One on a quiet machine; quadratic work would take hours.
  EXPECT_FALSE(tokenizer->warnings().empty());
  EXPECT_EQ(ids(tokenizer->encode("aaaa")), (std::vector<int32_t>{260}));
}

TEST(Vocabulary, SpecialTokensHaveALength) {
  SmallVocabulary small = byte_level_vocabulary();
  small.add(std::string(5000, 'x'), TokenType::user_defined);
  expect_refused(small, "special token 269: expected at most 4096 bytes, found 5000");
}

// Else the first letter of a long text would lead as deep as the token is long, at every place.
TEST(Vocabulary, OrdinaryTokensHaveALength) {
  SmallVocabulary small = byte_level_vocabulary();
  small.add(std::string(1024, 'a') + "b");
  expect_refused(small, "tokens: token 269: expected at most 1024 bytes, found 1025");
  SmallVocabulary spaced = spm_vocabulary();
  spaced.add(std::string(1024, 'a'));
  EXPECT_EQ(build(spaced)->warnings().size(), 0u);
  spaced.add(std::string(50'000, 'a') + "b", TokenType::unused);
  expect_refused(spaced, "expected at most 1024 bytes, found 50001");
}

TEST(Vocabulary, LivesWithHarmlessMistakes) {
  SmallVocabulary small = byte_level_vocabulary();
  small.add("the");                       // A twin of 257.
  small.add("");                          // An empty token.
  small.add("odd", TokenType(77));        // A type that nobody knows.
  small.merge("no", "thing");             // A merge of nothing.
  small.source.merges.push_back("half");  // No merge at all.
  const auto tokenizer = build(small);
  EXPECT_EQ(tokenizer->warnings().size(), 4u);
  EXPECT_EQ(ids(tokenizer->encode("the")), (std::vector<int32_t>{257}));
  EXPECT_EQ(tokenizer->piece(Token(270)), "");
}

TEST(Vocabulary, QuotesOfAFileAreShort) {
  SmallVocabulary small = spm_vocabulary();
  const std::string long_text(100'000, 'x');
  small.source.tokens[10] = long_text;
  auto built = Tokenizer::build(small.source);
  ASSERT_FALSE(built);
  EXPECT_LT(built.error().message.size(), 200u);
}

TEST(Spelling, UnescapesAndDecodes) {
  std::string out = "x";
  append_unescaped("\u2581a\u2581\u2581b", out);
  EXPECT_EQ(out, "x a  b");
  EXPECT_TRUE(append_spelled_bytes("\u0120\u00C3", out));
  EXPECT_EQ(out, "x a  b \xC3");
  EXPECT_FALSE(append_spelled_bytes("ok\u4E2D", out));
  EXPECT_FALSE(append_spelled_bytes("ok\xFF", out));
  EXPECT_EQ(out, "x a  b \xC3");
}

}  // namespace
}  // namespace cairn::tokenize::vocabulary_test
