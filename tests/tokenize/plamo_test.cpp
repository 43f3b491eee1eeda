// The way with the best sum of scores: by hand, and against trying all ways on random vocabularies.
#include "tokenize/plamo.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/tokenize/small_vocabularies.h"

namespace cairn::tokenize::plamo_test {
namespace {

using Ids = std::vector<int32_t>;

// Tokens 0 to 3 are special, tokens 4 to 259 the bytes, as in the published vocabulary.
SmallVocabulary plamo_vocabulary() {
  SmallVocabulary small;
  small.source.model = "plamo2";
  for (const char* name : {"<|plamo:unk|>", "<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>"}) {
    small.add(name, TokenType::control, -1.0f);
  }
  for (int byte = 0; byte < 256; ++byte) {
    small.add(fmt::format("<0x{:02X}>", byte), TokenType::byte);
  }
  return small;
}

TEST(Plamo, TakesTheBestWayNotTheLongestTokens) {
  SmallVocabulary small = plamo_vocabulary();
  const int32_t ab = small.add("ab", TokenType::normal, -2.0f);
  const int32_t c = small.add("c", TokenType::normal, -9.0f);
  const int32_t a = small.add("a", TokenType::normal, -3.0f);
  const int32_t bc = small.add("bc", TokenType::normal, -3.0f);
  const int32_t space = small.add(" c", TokenType::normal, -1.0f);
  const auto tokenizer = build(small);
  EXPECT_EQ(ids(tokenizer->encode("abc")), (Ids{a, bc}));
  EXPECT_EQ(ids(tokenizer->encode("ab c")), (Ids{ab, space}));
  EXPECT_EQ(ids(tokenizer->encode("cab")), (Ids{c, ab}));
  EXPECT_EQ(tokenizer->piece(Token(space)), " c");  // Spaces are spaces, at the beginning too.
}

TEST(Plamo, WhatNoTokenHasBecomesItsBytes) {
  SmallVocabulary small = plamo_vocabulary();
  const int32_t a = small.add("a", TokenType::normal, -3.0f);
  small.add("x", TokenType::normal, -3000.0f);  // Worse than to be unknown.
  const auto tokenizer = build(small);
  EXPECT_EQ(ids(tokenizer->encode("a\u00E9a")), (Ids{a, 4 + 0xC3, 4 + 0xA9, a}));
  EXPECT_EQ(ids(tokenizer->encode("x\xFF")), (Ids{4 + 'x', 4 + 0xFF}));
  EXPECT_EQ(ids(tokenizer->encode("<0x41>")).size(), 6u);
  EXPECT_TRUE(tokenizer->encode("").empty());
}

TEST(Plamo, EqualWaysAreDecidedForTheLongestToken) {
  SmallVocabulary small = plamo_vocabulary();
  small.add("a", TokenType::normal, -1.0f);
  const int32_t aa = small.add("aa", TokenType::normal, -2.0f);
  const int32_t aaa = small.add("aaa", TokenType::normal, -3.0f);
  EXPECT_EQ(ids(build(small)->encode("aaaaa")), (Ids{aaa, aa}));
}

TEST(Plamo, IsTheBestOfAllWaysOnRandomVocabularies) {
  std::mt19937 random(7);
  const auto word = [&](size_t most) {
    std::string text;
    for (size_t length = 1 + random() % most; length > 0; --length)
      text += char('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 60; ++round) {
    SmallVocabulary small = plamo_vocabulary();
    std::map<std::string, float> scores;
    for (int i = 0; i < 12; ++i) {
      const std::string next = word(4);
      const float score = -float(random() % 4000) / 7.0f;
      if (scores.emplace(next, score).second) small.add(next, TokenType::normal, score);
    }
    const auto tokenizer = build(small);
    const std::string text = word(12);
    constexpr double kUnknown = -1000;
    const std::function<double(size_t)> best = [&](size_t at) -> double {
      if (at == text.size()) return 0;
      double most = kUnknown + best(at + 1);
      for (const auto& [token, score] : scores) {
        if (text.compare(at, token.size(), token) != 0) continue;
        most = std::max(most, double(score) + best(at + token.size()));
      }
      return most;
    };
    double found = 0;
    std::string spelled;
    for (const Token token : tokenizer->encode(text)) {
      const std::string piece(tokenizer->piece(token));
      spelled += piece;
      found += index_of(token) < 260 ? kUnknown : double(scores.at(piece));
    }
    EXPECT_EQ(spelled, text);
    EXPECT_NEAR(found, best(0), 1e-2) << text;
  }
}

}  // namespace
}  // namespace cairn::tokenize::plamo_test
