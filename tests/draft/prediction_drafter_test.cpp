// An answer that follows its prediction, leaves it, and comes back.
#include "draft/prediction_drafter.h"

#include <gtest/gtest.h>

#include "tests/draft/world.h"

namespace cairn::draft::prediction_drafter_test {
namespace {

using test::random_text;
using test::Text;

const size_t kPrompt = 20;

Draft drafted(PredictionDrafter& drafter, std::span<const Token> text, int32_t count_max = 16) {
  Draft draft;
  drafter.propose({.text = text, .count_max = count_max}, draft);
  return draft;
}

TEST(PredictionDrafter, IsInStepFromTheFirstTokenToTheLast) {
  const Text prediction = random_text(100, 1);
  Text text = random_text(int32_t(kPrompt), 2);
  PredictionDrafter drafter(prediction, kPrompt);
  EXPECT_TRUE(drafted(drafter, std::span(text).first(kPrompt - 1)).tokens.empty());
  for (size_t i = 0; i < prediction.size(); ++i) {
    const Draft draft = drafted(drafter, text);
    ASSERT_EQ(draft.tokens.size(), std::min<size_t>(16, prediction.size() - i));
    EXPECT_TRUE(std::equal(draft.tokens.begin(), draft.tokens.end(),
                           prediction.begin() + std::ptrdiff_t(i)));
    EXPECT_GE(draft.chances[0], .5f);
    text.push_back(prediction[i]);
  }
  EXPECT_TRUE(drafted(drafter, text).tokens.empty());
}

// The answer is the prediction with a change in the middle; how many tokens the draft's first token
// was wrong for.
int32_t wrong_count(const Text& prediction, const Text& answer) {
  PredictionDrafter drafter(prediction, kPrompt);
  Text text = random_text(int32_t(kPrompt), 2);
  int32_t wrong = 0;
  for (const Token token : answer) {
    const Draft draft = drafted(drafter, text);
    if (draft.tokens.empty() || draft.tokens[0] != token) ++wrong;
    text.push_back(token);
  }
  return wrong;
}

TEST(PredictionDrafter, FindsItsPlaceAgain) {
  const Text prediction = random_text(200, 3);
  Text replaced = prediction, inserted = prediction, removed = prediction, rewritten = prediction;
  replaced[50] = Token(7777);
  const Text other = random_text(10, 4);
  inserted.insert(inserted.begin() + 50, other.begin(), other.end());
  removed.erase(removed.begin() + 50, removed.begin() + 70);
  std::copy(other.begin(), other.end(), rewritten.begin() + 50);
  EXPECT_EQ(wrong_count(prediction, replaced), 1);
  EXPECT_LE(wrong_count(prediction, inserted), 10 + 3);
  EXPECT_LE(wrong_count(prediction, removed), 3);
  EXPECT_LE(wrong_count(prediction, rewritten), 10 + 3);
}

TEST(PredictionDrafter, ARepeatedPartIsTheOneThatIsNext) {
  Text prediction = random_text(20, 8);
  prediction.push_back(Token(8001));
  const Text part(prediction.begin(), prediction.begin() + 20);
  prediction.insert(prediction.end(), part.begin(), part.end());
  prediction.push_back(Token(8002));
  EXPECT_EQ(wrong_count(prediction, prediction), 0);
}

TEST(PredictionDrafter, GoesBackWithTheText) {
  const Text prediction = random_text(200, 5);
  Text text = random_text(int32_t(kPrompt), 2);
  PredictionDrafter drafter(prediction, kPrompt);
  text.insert(text.end(), prediction.begin(), prediction.begin() + 100);
  EXPECT_EQ(drafted(drafter, text).tokens[0], prediction[100]);
  text.resize(kPrompt + 40);
  EXPECT_EQ(drafted(drafter, text).tokens[0], prediction[40]);
  text.resize(kPrompt);
  EXPECT_EQ(drafted(drafter, text).tokens[0], prediction[0]);
}

TEST(PredictionDrafter, AWrongOneIsTrustedLessAndLess) {
  const Text prediction = random_text(200, 6);
  Text text = random_text(int32_t(kPrompt), 2);
  PredictionDrafter drafter(prediction, kPrompt);
  float last = 1;
  for (int i = 0; i < 5; ++i) {
    const Draft draft = drafted(drafter, text);
    EXPECT_LT(draft.chances[0], last);
    last = draft.chances[0];
    text.push_back(Token(7777));
  }
  PredictionDrafter empty({}, kPrompt);
  EXPECT_TRUE(drafted(empty, text).tokens.empty());
}

TEST(PredictionDrafter, AnEditedTextIsWrittenInAQuarterOfTheTime) {
  Text prediction = random_text(1000, 7);
  Text text = random_text(int32_t(kPrompt), 2);
  text.insert(text.end(), prediction.begin(), prediction.end());
  for (size_t i = kPrompt + 40; i < text.size(); i += 97) text[i] = Token(1);
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<PredictionDrafter>(prediction, kPrompt));
  Speculator speculator(std::move(drafters), test::kVocabulary, test::timeless());
  EXPECT_GE(test::answer(speculator, text, kPrompt, {}).speed(), 4);
}

}  // namespace
}  // namespace cairn::draft::prediction_drafter_test
