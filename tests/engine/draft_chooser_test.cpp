// Which tokens a model drafts, and how many, where its logits are made up.
#include "engine/drafts/draft_chooser.h"

#include <gtest/gtest.h>

#include <thread>

namespace cairn::test::draft_chooser_test {
namespace {

using Tokens = std::vector<Token>;

// Logits that prefer a token by so much.
std::vector<float> peak(int32_t token, float height) {
  std::vector<float> logits(50);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = float((7 * i) % 11) * 0.1f;
  logits[size_t(token) % logits.size()] = height;
  return logits;
}

// A model that counts up.
class Counting {
 public:
  explicit Counting(float height, std::chrono::microseconds delay = {})
      : height_(height), delay_(delay) {}

  Tokens drafted(DraftChooser& chooser, const Tokens& text, double step_seconds = 0,
                 int32_t count_max = 30) {
    std::vector<float> logits = peak(index_of(text.back()) + 1, height_);
    const auto compute = [&](Token token) -> Result<std::span<const float>> {
      std::this_thread::sleep_for(delay_);
      ++computed;
      logits = peak(index_of(token) + 1, height_);
      return std::span<const float>(logits);
    };
    draft::Draft draft;
    chooser.follow(text);
    EXPECT_TRUE(chooser.choose({.text = text, .count_max = count_max, .step_seconds = step_seconds},
                               logits, compute, draft));
    EXPECT_EQ(draft.tokens.size(), draft.chances.size());
    chances = draft.chances;
    return draft.tokens;
  }

  int32_t computed = 0;
  std::vector<float> chances;

 private:
  float height_;
  std::chrono::microseconds delay_;
};

TEST(DraftChooser, DraftsWhatIsLikelyToTheEnd) {
  const sample::Sampler sampler({.temperature = 0});
  DraftChooser chooser(&sampler, nullptr);
  Counting model(20);
  const Tokens drafted = model.drafted(chooser, {Token(5)});
  ASSERT_EQ(drafted.size(), size_t(DraftChooser::kTokensMost));
  for (size_t i = 0; i < drafted.size(); ++i) EXPECT_EQ(drafted[i], Token(6 + i));
  // Nothing is computed behind the last one.
  EXPECT_EQ(model.computed, DraftChooser::kTokensMost - 1);
  EXPECT_EQ(model.drafted(chooser, {Token(5)}, 0, 3).size(), 3u);
  EXPECT_EQ(model.drafted(chooser, {Token(5)}, 0, 1), Tokens({Token(6)}));
}

// The tokens that the answer's sampler takes from the same logits, whatever the chain.
TEST(DraftChooser, ChoosesAsTheAnswerDoes) {
  for (const sample::SamplingParams& params : std::vector<sample::SamplingParams>{
           {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 4},
           {.temperature = 0.8f, .seed = 5},
           {.temperature = 1, .repeat_penalty = 1.5f, .seed = 6},
           {.temperature = 1, .mirostat = 2, .seed = 7}}) {
    sample::Sampler answers(params);
    DraftChooser chooser(&answers, nullptr);
    Counting model(1.5f);
    Tokens text = {Token(3), Token(9)};
    int32_t compared = 0;
    for (int32_t step = 0; step < 20; ++step) {
      const Tokens drafted = model.drafted(chooser, text);
      ASSERT_FALSE(drafted.empty());
      for (const Token token : drafted) {
        const std::vector<float> logits = peak(index_of(text.back()) + 1, 1.5f);
        Result<Token> chosen =
            answers.sample({.logits = logits, .position = int32_t(text.size()), .history = text});
        EXPECT_EQ(*chosen, token);
        text.push_back(token);
        ++compared;
      }
    }
    EXPECT_GT(compared, 20);
  }
}

TEST(DraftChooser, LearnsHowOftenItIsRight) {
  const sample::Sampler sampler({.temperature = 0});
  DraftChooser chooser(&sampler, nullptr);
  Counting model(20);
  Tokens text = {Token(1)};
  model.drafted(chooser, text);
  const float hopeful = model.chances[0];
  size_t count = 16;
  // It is never right.
  for (int32_t i = 0; i < 40; ++i) {
    text.push_back(Token(1));
    count = model.drafted(chooser, text).size();
  }
  EXPECT_LT(model.chances[0], 0.3f);
  EXPECT_GT(hopeful, 0.8f);
  EXPECT_EQ(count, 1u);
}

// A token more has to be cheaper than the step's.
TEST(DraftChooser, EndsWhereATokenCostsMoreThanItGains) {
  const sample::Sampler sampler({.temperature = 0});
  for (const bool is_cheap : {true, false}) {
    DraftChooser chooser(&sampler, nullptr);
    Counting model(20, std::chrono::microseconds(200));
    // Until its time is known.
    model.drafted(chooser, {Token(1)}, 1.0);
    const size_t count = model.drafted(chooser, {Token(1)}, is_cheap ? 1.0 : 1e-5).size();
    EXPECT_EQ(count, is_cheap ? 16u : 1u);
  }
}

}  // namespace
}  // namespace cairn::test::draft_chooser_test
