// Compared with a search of the whole text, on texts that repeat themselves in every way.
#include "draft/suffix_automaton.h"

#include <gtest/gtest.h>

#include "tests/draft/world.h"

namespace cairn::draft::suffix_automaton_test {
namespace {

using test::random_text;
using test::Text;
using Cursor = SuffixAutomaton::Cursor;

bool occurs(const Text& text, std::span<const Token> part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end()) != text.end();
}

int32_t longest_match(const Text& text, std::span<const Token> query) {
  size_t length = 0;
  while (length < query.size() && occurs(text, query.last(length + 1))) ++length;
  return int32_t(length);
}

SuffixAutomaton of(const Text& text) {
  SuffixAutomaton automaton;
  for (const Token token : text) automaton.append(token);
  return automaton;
}

// The match ends where it says that it does, and is the end of the query.
void expect_occurrence(const SuffixAutomaton& automaton, Cursor cursor,
                       std::span<const Token> query) {
  const size_t end = automaton.end_of(cursor);
  const size_t length = size_t(cursor.length);
  ASSERT_LE(length, end);
  const auto found = automaton.tokens().subspan(end - length, length);
  const auto wanted = query.last(length);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.begin()));
  const int64_t followed = automaton.followed_end_of(cursor);
  if (followed < 0) return;
  ASSERT_LT(size_t(followed), automaton.tokens().size());
  EXPECT_NE(automaton.tokens()[size_t(followed)], SuffixAutomaton::kNoToken);
  const auto other = automaton.tokens().subspan(size_t(followed) - length, length);
  EXPECT_TRUE(std::equal(other.begin(), other.end(), wanted.begin()));
}

void expect_longest_matches(const Text& text, const Text& query) {
  const SuffixAutomaton automaton = of(text);
  Cursor cursor;
  for (size_t i = 0; i < query.size(); ++i) {
    automaton.advance(cursor, query[i]);
    const auto seen = std::span(query).first(i + 1);
    ASSERT_EQ(cursor.length, longest_match(text, seen)) << i;
    for (Cursor shorter = cursor; shorter.length > 0; shorter = automaton.shorter(shorter)) {
      expect_occurrence(automaton, shorter, seen);
    }
  }
}

Text periodic(int32_t count, int32_t period) {
  Text text;
  for (int32_t i = 0; i < count; ++i) text.push_back(Token(i % period));
  return text;
}

TEST(SuffixAutomaton, FindsTheLongestMatch) {
  for (const uint32_t symbols : {2u, 3u, 10u, 200u, 50000u}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Text query = random_text(60, seed + 100, symbols);
      const Text text = random_text(200, seed, symbols);
      query.insert(query.end(), text.begin() + 50, text.begin() + 120);
      expect_longest_matches(text, query);
    }
  }
  expect_longest_matches(periodic(200, 1), periodic(300, 1));
  expect_longest_matches(periodic(200, 7), periodic(300, 7));
  expect_longest_matches(periodic(200, 7), periodic(100, 5));
}

TEST(SuffixAutomaton, FollowsATextThatItIsMadeOf) {
  for (const uint32_t symbols : {2u, 5u, 40u}) {
    const Text text = random_text(300, symbols, symbols);
    SuffixAutomaton automaton;
    Cursor cursor;
    for (size_t i = 0; i < text.size(); ++i) {
      automaton.advance(cursor, text[i]);
      const Text before(text.begin(), text.begin() + std::ptrdiff_t(i));
      ASSERT_EQ(cursor.length, longest_match(before, std::span(text).first(i + 1))) << i;
      automaton.append(text[i]);
    }
  }
}

TEST(SuffixAutomaton, CursorsStandWhileTextsAreAppended) {
  RandomStream random(4, 0, 0);
  for (int round = 0; round < 50; ++round) {
    SuffixAutomaton automaton;
    Text all, query;
    Cursor cursor;
    for (int i = 0; i < 150; ++i) {
      for (uint32_t more = random.below(4); more > 0; --more) {
        const Token token = Token(int32_t(random.below(3)));
        all.push_back(token);
        automaton.append(token);
      }
      query.push_back(Token(int32_t(random.below(3))));
      automaton.advance(cursor, query.back());
      // What came later than the cursor may be missed, never made up.
      ASSERT_LE(cursor.length, longest_match(all, query));
      expect_occurrence(automaton, cursor, query);
    }
  }
}

TEST(SuffixAutomaton, MatchesDoNotRunAcrossTexts) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SuffixAutomaton automaton;
    Text all;
    for (uint64_t part = 0; part < 12; ++part) {
      for (const Token token : random_text(20, 100 * seed + part, 3)) {
        automaton.append(token);
        all.push_back(token);
      }
      automaton.end_text();
      automaton.end_text();  // No empty texts.
      all.push_back(SuffixAutomaton::kNoToken);
    }
    ASSERT_TRUE(
        std::equal(all.begin(), all.end(), automaton.tokens().begin(), automaton.tokens().end()));
    const Text query = random_text(200, 7000 + seed, 3);
    Cursor cursor;
    for (size_t i = 0; i < query.size(); ++i) {
      automaton.advance(cursor, query[i]);
      ASSERT_EQ(cursor.length, longest_match(all, std::span(query).first(i + 1)));
      expect_occurrence(automaton, cursor, std::span(query).first(i + 1));
    }
  }
}

TEST(SuffixAutomaton, ALongMatchEndsWhereItOccurredLast) {
  Text text = random_text(50, 1, 50000);
  const Text part(text.begin() + 10, text.begin() + 30);
  for (int i = 0; i < 3; ++i) {
    const Text other = random_text(20, uint64_t(i) + 2, 50000);
    text.insert(text.end(), other.begin(), other.end());
    text.insert(text.end(), part.begin(), part.end());
  }
  const size_t end = text.size();
  text.push_back(Token(60000));
  const SuffixAutomaton automaton = of(text);
  Cursor cursor;
  for (const Token token : part) automaton.advance(cursor, token);
  EXPECT_EQ(cursor.length, 20);
  EXPECT_EQ(automaton.end_of(cursor), end);
}

TEST(SuffixAutomaton, WhatEndedATextAtLastIsFollowedElsewhere) {
  SuffixAutomaton automaton;
  const auto say = [&](std::initializer_list<int32_t> ids) {
    for (const int32_t id : ids) automaton.append(Token(id));
    automaton.end_text();
  };
  say({1, 2, 3, 4});
  say({5, 1, 2, 3});
  Cursor cursor;
  for (const int32_t id : {1, 2, 3}) automaton.advance(cursor, Token(id));
  EXPECT_EQ(automaton.end_of(cursor), 9u);
  EXPECT_EQ(automaton.followed_end_of(cursor), 3);
  automaton.advance(cursor, Token(4));
  EXPECT_EQ(automaton.followed_end_of(cursor), -1);
}

TEST(SuffixAutomaton, RepetitionTakesNoMoreTimeNorMemoryThanOtherText) {
  constexpr int32_t kCount = 1000000;
  size_t bytes_most = 0;
  for (const Text& text : {periodic(kCount, 1), periodic(kCount, 977), random_text(kCount, 1, 2),
                           random_text(kCount, 1, 50000)}) {
    const SuffixAutomaton automaton = of(text);
    EXPECT_EQ(automaton.tokens().size(), text.size());
    bytes_most = std::max(bytes_most, automaton.bytes());
    EXPECT_LE(automaton.bytes(), automaton.bytes_to_append());
  }
  EXPECT_LE(bytes_most, size_t(kCount) * 150);
}

TEST(SuffixAutomaton, GrowsWithinWhatItAnnounces) {
  SuffixAutomaton automaton;
  size_t announced = 0;
  for (const Token token : random_text(100000, 9, 30000)) {
    announced = std::max(announced, automaton.bytes_to_append());
    automaton.append(token);
    ASSERT_LE(automaton.bytes(), announced);
  }
}

}  // namespace
}  // namespace cairn::draft::suffix_automaton_test
