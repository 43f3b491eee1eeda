// Two generations within a budget, and cursors that survive what happens to them.
#include "draft/text_index.h"

#include <gtest/gtest.h>

#include "tests/draft/world.h"

namespace cairn::draft::text_index_test {
namespace {

using test::random_text;
using test::Text;

void append(TextIndex& index, std::span<const Token> text) {
  for (const Token token : text) index.append(token);
}

int32_t match_length(const TextIndex& index, std::span<const Token> text) {
  TextIndex::Cursor cursor;
  index.follow(cursor, text, text.size());
  return index.longest(cursor).length;
}

TEST(TextIndex, KeepsItsBudgetAndWhatCameLast) {
  constexpr size_t kBudget = size_t(2) << 20;
  for (const uint32_t symbols : {1u, 3u, 1000u, 50000u}) {
    TextIndex index(kBudget);
    const Text text = random_text(200000, symbols, symbols);
    for (const Token token : text) {
      index.append(token);
      ASSERT_LE(index.bytes(), kBudget);
    }
    // The budget is used, and the younger half of what fits is there.
    EXPECT_GE(index.bytes(), kBudget / 4);
    const auto late = std::span(text).last(5000).first(60);
    EXPECT_EQ(match_length(index, late), 60);
  }
}

TEST(TextIndex, TheOldestIsDroppedAndMatchesRunAcrossGenerations) {
  TextIndex index(size_t(1) << 20);
  const Text text = random_text(100000, 5, 50000);
  append(index, text);
  EXPECT_LE(match_length(index, std::span(text).first(60)), 1);
  // Everywhere in what is kept, whole windows are found.
  size_t kept = text.size();
  while (kept >= 40 && match_length(index, std::span(text).first(kept).last(40)) == 40) kept -= 7;
  EXPECT_LE(kept, text.size() - 5000);
}

TEST(TextIndex, CursorsAreMadeAnewWhereTheirGenerationIsGone) {
  TextIndex index(size_t(256) << 10);
  const Text text = random_text(60000, 6, 5000);
  TextIndex::Cursor cursor;
  for (size_t i = 0; i < text.size(); ++i) {
    index.append(text[i]);
    index.follow(cursor, std::span(text).first(i + 1), 1);
    ASSERT_GE(index.longest(cursor).length, int32_t(std::min(i, size_t(20)))) << i;
  }
  index.forget();
  EXPECT_EQ(index.longest(cursor).length, 0);
  index.follow(cursor, text, 1);
  EXPECT_EQ(index.longest(cursor).length, 0);
  append(index, text);
  index.follow(cursor, text, 0);
  EXPECT_GE(index.longest(cursor).length, 60);
}

TEST(TextIndex, WithoutBudgetNothingIsKept) {
  TextIndex index(1000);
  const Text text = random_text(5000, 7, 10);
  append(index, text);
  EXPECT_EQ(match_length(index, text), 0);
  EXPECT_LE(index.bytes(), 8192u);
}

TEST(TextIndex, TokensThatAreNoneEndATextAndEndsAreKnown) {
  TextIndex index(size_t(1) << 20);
  EXPECT_TRUE(index.ends_with({}));
  append(index, Text({Token(1), Token(2), Token(-7), Token(3), Token(4)}));
  EXPECT_EQ(match_length(index, Text({Token(2), Token(3)})), 1);
  EXPECT_EQ(match_length(index, Text({Token(3), Token(4)})), 2);
  EXPECT_TRUE(index.ends_with(Text({Token(3), Token(4)})));
  EXPECT_FALSE(index.ends_with(Text({Token(2), Token(3), Token(4)})));
  index.end_text();
  EXPECT_FALSE(index.ends_with(Text({Token(4)})));
}

}  // namespace
}  // namespace cairn::draft::text_index_test
