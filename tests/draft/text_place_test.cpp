// A copy with changes: which token is expected behind each kind of change.
#include "draft/text_place.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::draft::text_place_test {
namespace {

std::vector<Token> numbered(int32_t count) {
  std::vector<Token> tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back(Token(i));
  return tokens;
}

// How often the token that comes is not the expected one.
int32_t wrong_count(const std::vector<Token>& original, const std::vector<Token>& copy) {
  TextPlace place;
  int32_t wrong = 0;
  for (const Token token : copy) {
    const bool is_right = place.next() < original.size() && original[place.next()] == token;
    if (!is_right) ++wrong;
    place.advance(original, token);
  }
  return wrong;
}

TEST(TextPlace, IsInStepBehindAReplacedAnInsertedAndARemovedToken) {
  const std::vector<Token> original = numbered(60);
  EXPECT_EQ(wrong_count(original, original), 0);
  std::vector<Token> replaced = original, inserted = original, removed = original;
  for (const size_t at : {10u, 25u, 26u, 40u}) replaced[at] = Token(1000);
  EXPECT_EQ(wrong_count(original, replaced), 4);
  inserted.insert(inserted.begin() + 20, Token(1000));
  EXPECT_EQ(wrong_count(original, inserted), 2);
  removed.erase(removed.begin() + 20);
  EXPECT_EQ(wrong_count(original, removed), 1);
}

TEST(TextPlace, ATrustThatWasEarnedIsNotLostByOneChange) {
  const std::vector<Token> original = numbered(100);
  TextPlace practised, fresh;
  for (int32_t i = 0; i < 40; ++i) practised.advance(original, Token(i));
  practised.advance(original, Token(1000));
  fresh.advance(original, Token(1000));
  EXPECT_EQ(practised.wrong(), 1);
  EXPECT_EQ(practised.chance(0), fresh.chance(0));
  EXPECT_GT(practised.chance(1), fresh.chance(1));
  const float behind_one = practised.chance(0);
  practised.advance(original, Token(1001));
  EXPECT_LT(practised.chance(0), behind_one);
  EXPECT_EQ(practised.next(), 42u);
}

TEST(TextPlace, EndsWithItsText) {
  const std::vector<Token> original = numbered(3);
  TextPlace place;
  for (int32_t i = 0; i < 10; ++i) place.advance(original, Token(i));
  EXPECT_GE(place.next(), original.size());
  EXPECT_EQ(place.wrong(), 7);
  place = {};
  place.advance({}, Token(1));
  EXPECT_EQ(place.next(), 1u);
}

}  // namespace
}  // namespace cairn::draft::text_place_test
