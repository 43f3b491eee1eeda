// The stream of text: exact bytes, whole characters, little held back.
#include "tokenize/detokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/tokenize/small_vocabularies.h"

namespace cairn::tokenize::detokenizer_test {
namespace {

TEST(Detokenizer, HoldsBackHalfACharacter) {
  const auto tokenizer = build(byte_level_vocabulary());
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(Token('a')), "a");
  EXPECT_EQ(detokenizer.push(Token(0xF0)), "");
  EXPECT_EQ(detokenizer.push(Token(0x9F)), "");
  EXPECT_EQ(detokenizer.push(Token(0x98)), "");
  EXPECT_EQ(detokenizer.push(Token(0x80)), "\U0001F600");
  EXPECT_EQ(detokenizer.push(Token(0xE2)), "");
  EXPECT_EQ(detokenizer.push(Token('a')),
            "\xE2"
            "a");  // It never became one.
  EXPECT_EQ(detokenizer.push(Token(0xC3)), "");
  EXPECT_EQ(detokenizer.flush(), "\xC3");
  EXPECT_EQ(detokenizer.flush(), "");
  EXPECT_EQ(detokenizer.push(Token(0x80)), "\x80");
}

// The places inside the well-formed characters of a text.
std::set<size_t> places_inside(std::string_view text) {
  std::set<size_t> places;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max(unicode::first_character(text.substr(at)).length, 1u);
    for (size_t i = 1; i < length; ++i) places.insert(at + i);
    at += length;
  }
  return places;
}

TEST(Detokenizer, AnyTokensGiveTheirExactBytesAndNoHalfCharacter) {
  const auto tokenizer = build(byte_level_vocabulary());
  std::mt19937 random(53);
  for (int round = 0; round < 300; ++round) {
    Detokenizer detokenizer(*tokenizer);
    std::string expected, text;
    std::vector<size_t> ends;
    for (int i = 0; i < 60; ++i) {
      // Many bytes from the upper half, so that characters begin, go on and break off.
      const auto token = Token(random() % 4 == 0 ? random() % 264 : 128 + random() % 128);
      expected += tokenizer->piece(token);
      text += detokenizer.push(token);
      ends.push_back(text.size());
      EXPECT_LE(expected.size() - text.size(), 3u);
    }
    text += detokenizer.flush();
    EXPECT_EQ(text, expected);
    const std::set<size_t> inside = places_inside(text);
    EXPECT_FALSE(inside.empty());
    for (const size_t end : ends) EXPECT_EQ(inside.count(end), 0u);
  }
}

TEST(Detokenizer, ControlTokensAreSilentUnlessAskedFor) {
  const auto tokenizer = build(byte_level_vocabulary());
  const std::vector<Token> tokens = {Token(264), Token(257), Token(266), Token(265)};
  EXPECT_EQ(decode(*tokenizer, tokens), "the<tool>");
  EXPECT_EQ(decode(*tokenizer, tokens, {.show_control = true}), "<|start|>the<tool><|im_end|>");
}

TEST(Detokenizer, WordsOfWordPieceBeginWithSpaces) {
  const auto tokenizer = build(wpm_vocabulary());
  const std::vector<Token> tokens = tokenizer->encode("unable,a un", {.add_special = true});
  EXPECT_EQ(decode(*tokenizer, tokens, {.is_whole_text = true}), "unable , a un");
}

TEST(Detokenizer, TheSpaceOfSpmGoesWithAWholeText) {
  const auto tokenizer = build(spm_vocabulary());
  const std::vector<Token> tokens = tokenizer->encode(" he\u00E8", {.add_special = true});
  EXPECT_EQ(decode(*tokenizer, tokens, {.is_whole_text = true}), " he\u00E8");
  EXPECT_EQ(decode(*tokenizer, tokens), "  he\u00E8");
  Detokenizer detokenizer(*tokenizer, {.is_whole_text = true});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(detokenizer.push(Token(1)), "");
    EXPECT_EQ(detokenizer.push(Token(266)), "he");
    EXPECT_EQ(detokenizer.push(Token(266)), " he");
    EXPECT_EQ(detokenizer.flush(), "");
  }
}

}  // namespace
}  // namespace cairn::tokenize::detokenizer_test
