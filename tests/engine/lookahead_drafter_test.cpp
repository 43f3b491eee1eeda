// Drafts from what wrong rows have said, on models of several kinds of memory: no bit changes, and
// some of them are right.
#include "engine/drafts/lookahead_drafter.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/engine/sampled_job.h"
#include "tests/models/golden_model.h"
#include "tests/small_pages.h"

namespace cairn::test::lookahead_drafter_test {
namespace {

using Tokens = std::vector<Token>;

class LookaheadDrafters : public SmallPagesTest<const char*> {
 protected:
  std::unique_ptr<Engine> load() const {
    gguf::File file = gguf::File::open(golden_path(GetParam(), ".gguf")).value();
    return Engine::load(std::move(file), golden_options(KvType::f16)).value();
  }
};

TEST_P(LookaheadDrafters, ChangeNoBit) {
  const auto plain = load(), engine = load();
  std::mt19937 random(7);
  int64_t checked = 0, accepted = 0;
  for (const float temperature : {0.0f, 0.0f, 0.0f, 0.8f, 1.5f}) {
    SampledRequest request{.token_count = 60, .sampling = {.temperature = temperature, .seed = 5}};
    for (int i = 0; i < 20; ++i) request.prompt.push_back(Token(int32_t(random() % 384)));
    const Sampled expected = sampled_alone(*plain, request);
    request.looks_ahead = true;
    const Sampled found = sampled_alone(*engine, request);
    EXPECT_EQ(found.tokens, expected.tokens) << temperature;
    EXPECT_EQ(found.digest, expected.digest) << temperature;
    checked += found.checked;
    accepted += found.accepted;
  }
  EXPECT_GT(checked, 100);
  // At temperature 0 these models repeat themselves sooner or later.
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, checked);
  engine->cache().clear();
  EXPECT_EQ(engine->memory().usage().used_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Models, LookaheadDrafters,
                         ::testing::Values("llama", "gemma3", "mamba", "granitehybrid"),
                         [](const auto& model) { return std::string(model.param); });

// A text that was rewound, or goes on otherwise, has no guesses; what is asked for is not exceeded.
TEST(LookaheadDrafter, KeepsWithinWhatIsAskedFor) {
  LookaheadDrafter drafter;
  draft::Draft draft;
  drafter.propose({.text = {}, .count_max = 4}, draft);
  EXPECT_TRUE(draft.tokens.empty());
  const Tokens text = {Token(3), Token(4)};
  for (const int32_t count_max : {0, 1, 4, 100}) {
    draft.clear();
    drafter.propose({.text = text, .count_max = count_max}, draft);
    EXPECT_LE(draft.tokens.size(), size_t(count_max));
    EXPECT_EQ(draft.tokens.size(), draft.chances.size());
  }
  EXPECT_EQ(draft.tokens, Tokens(draft.tokens.size(), Token(4)));
}

}  // namespace
}  // namespace cairn::test::lookahead_drafter_test
