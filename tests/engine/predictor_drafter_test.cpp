// Drafts of a model's own predicting layer: no bit changes, and each draft is what the layer makes
// of the whole answer at once.
#include "engine/drafts/predictor_drafter.h"

#include <gtest/gtest.h>

#include <random>

#include "sample/candidates.h"
#include "tests/engine/predicting_model.h"
#include "tests/engine/sampled_job.h"
#include "tests/small_pages.h"

namespace cairn::test::predictor_drafter_test {
namespace {

using Tokens = std::vector<Token>;

Tokens random_tokens(uint32_t seed, int32_t count) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back(Token(int32_t(random() % 384)));
  return tokens;
}

class PredictorDrafters : public SmallPagesTest<const char*> {
 protected:
  std::unique_ptr<Engine> load(size_t budget = size_t(64) << 20) const {
    EngineOptions options = golden_options(KvType::f16);
    options.memory_budget = budget;
    return load_predicting(GetParam(), options);
  }
  // The rows of a text's tokens, and the logits of the layer behind all of them but the last.
  std::vector<float> hidden_rows(Engine& engine, std::span<const Token> text) const {
    memory::Sequence sequence = engine.memory().new_sequence();
    std::vector<int32_t> outputs(text.size());
    std::iota(outputs.begin(), outputs.end(), 0);
    const StepItem item{.sequence = &sequence, .tokens = text, .outputs = outputs};
    std::vector<float> rows;
    const auto take = [&](size_t, const StepOutputs& made) {
      for (int32_t row = 0; row < made.count(); ++row) {
        const size_t begin = rows.size();
        rows.insert(rows.end(), made.hidden(row).begin(), made.hidden(row).end());
        engine.predictor()->prepare(std::span(rows).subspan(begin), Predictor::Origin::model);
      }
      return made.count();
    };
    EXPECT_TRUE(engine.step(std::span(&item, 1), take));
    return rows;
  }
  Token predicted(Engine& engine, std::span<const Token> text, std::span<const float> rows,
                  size_t begin) const {
    Predictor& predictor = *engine.predictor();
    const size_t width = size_t(predictor.width());
    memory::Sequence sequence = predictor.memory().new_sequence();
    const int32_t last = int32_t(text.size() - begin) - 2;
    const StepItem item{.sequence = &sequence,
                        .tokens = text.subspan(begin + 1),
                        .outputs = std::span(&last, 1),
                        .given = rows.subspan(begin * width, size_t(last + 1) * width)};
    Token token = Token(-1);
    const auto take = [&](size_t, const StepOutputs& made) {
      token = sample::likeliest(made.logits(0));
      return last + 1;
    };
    EXPECT_TRUE(predictor.step(std::span(&item, 1), take));
    return token;
  }
};

TEST_P(PredictorDrafters, ChangeNoBit) {
  const std::vector<sample::SamplingParams> samplers = {
      {.temperature = 0},
      {.temperature = 1},
      {.temperature = 1, .top_k = 0, .xtc_probability = 0.5f, .xtc_threshold = 0.02f},
      {.temperature = 0.7f, .dry_multiplier = 0.8f, .dry_last_count = -1, .dry_breakers = {}},
      {.temperature = 1, .mirostat = 2}};
  const auto plain = load();
  const auto engine = load();
  int64_t checked = 0, accepted = 0;
  for (size_t index = 0; index < 3 * samplers.size(); ++index) {
    SampledRequest request{.prompt = random_tokens(uint32_t(index), 3 + 29 * int32_t(index % 4)),
                           .token_count = 60,
                           .sampling = samplers[index % samplers.size()]};
    request.sampling.seed = index;
    const Sampled expected = sampled_alone(*plain, request);
    request.predicts = true;
    const Sampled found = sampled_alone(*engine, request);
    EXPECT_EQ(found.tokens, expected.tokens) << index;
    EXPECT_EQ(found.digest, expected.digest) << index;
    EXPECT_EQ(found.drafts_off, "");
    checked += found.checked;
    accepted += found.accepted;
  }
  EXPECT_GT(checked, 100);
  EXPECT_LT(accepted, checked);
  EXPECT_EQ(engine->predictor()->memory().usage().used_bytes(), 0u);
  engine->cache().clear();
  EXPECT_EQ(engine->memory().usage().used_bytes(), 0u);
}

// Rows come one by one or many at once, and sometimes not at all; the text is sometimes rewound.
TEST_P(PredictorDrafters, DraftWhatTheLayerMakesOfAllOfIt) {
  const auto engine = load();
  const sample::Sampler sampler({.temperature = 0});
  PredictorDrafter drafter(engine->predictor(), &sampler, nullptr);
  std::mt19937 random(4);
  const Tokens text = random_tokens(1, 120);
  const std::vector<float> rows = hidden_rows(*engine, text);
  size_t begin = 0, end = 10;
  int32_t draft_count = 0;
  while (end + 20 < text.size()) {
    const size_t count = 1 + random() % 9;
    const bool is_lost = random() % 6 == 0;
    const bool is_rewound = random() % 7 == 0 && end > begin + 3;
    if (is_rewound) end -= 2;
    // The rows of tokens [end, end + count), as a step hands them on.
    if (is_rewound || draft_count == 0) begin = end;
    if (!is_lost) {
      memory::Sequence sequence = engine->memory().new_sequence();
      std::vector<int32_t> outputs;
      for (size_t i = end; i < end + count; ++i) outputs.push_back(int32_t(i));
      const StepItem item{
          .sequence = &sequence, .tokens = std::span(text).first(end + count), .outputs = outputs};
      const auto take = [&](size_t, const StepOutputs& made) {
        drafter.take(int32_t(end), made, int32_t(count));
        return int32_t(end + count);
      };
      ASSERT_TRUE(engine->step(std::span(&item, 1), take));
    }
    end += count;
    draft::Draft draft;
    const std::span<const Token> seen = std::span(text).first(end + 1);
    drafter.propose({.text = seen, .count_max = 1 + int32_t(random() % 4)}, draft);
    EXPECT_EQ(draft.tokens.empty(), is_lost);
    if (is_lost) {
      begin = end;
      continue;
    }
    ASSERT_FALSE(draft.tokens.empty());
    EXPECT_EQ(draft.tokens[0], predicted(*engine, seen, rows, begin)) << end;
    ++draft_count;
  }
  EXPECT_GT(draft_count, 10);
}

// Where drafts are off for long nobody asks, and rows are still handed on.
TEST_P(PredictorDrafters, KeepFewRowsThatNobodyAsksFor) {
  const auto engine = load();
  const sample::Sampler sampler({.temperature = 0});
  PredictorDrafter drafter(engine->predictor(), &sampler, nullptr);
  const Tokens text = random_tokens(3, 480);
  memory::Sequence sequence = engine->memory().new_sequence();
  const int32_t output = 0;
  const StepItem item{
      .sequence = &sequence, .tokens = std::span(text).first(1), .outputs = std::span(&output, 1)};
  const auto take = [&](size_t, const StepOutputs& made) {
    for (int32_t position = 0; position < 479; ++position) drafter.take(position, made, 1);
    return 1;
  };
  ASSERT_TRUE(engine->step(std::span(&item, 1), take));
  draft::Draft draft;
  drafter.propose({.text = text, .count_max = 1}, draft);
  EXPECT_EQ(draft.tokens.size(), 1u);
  // So many that nobody has asked for were dropped.
  memory::Memory& memory = engine->predictor()->memory();
  const size_t page_bytes = memory.layout().groups[0].block_bytes;
  EXPECT_GT(memory.usage().used_bytes(), 0u);
  EXPECT_LE(memory.usage().used_bytes(), (257 / 32 + 1) * page_bytes);
}

TEST_P(PredictorDrafters, EndWhereTheirMemoryIsFull) {
  const auto engine = load(size_t(1) << 20);
  Predictor& predictor = *engine->predictor();
  std::vector<memory::Sequence> held;
  const std::vector<float> rows(size_t(predictor.width()) * 60, 0.5f);
  bool is_full = false;
  for (int32_t i = 0; i < 1000 && !is_full; ++i) {
    held.push_back(predictor.memory().new_sequence());
    const Tokens tokens = random_tokens(uint32_t(i), 60);
    const StepItem item{.sequence = &held.back(), .tokens = tokens, .given = rows};
    is_full = !predictor.step(std::span(&item, 1), [](size_t, const StepOutputs&) { return 60; });
  }
  ASSERT_TRUE(is_full);
  SampledRequest request{.prompt = random_tokens(2, 20), .token_count = 40};
  const Sampled expected = sampled_alone(*engine, request);
  request.predicts = true;
  const Sampled found = sampled_alone(*engine, request);
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(found.digest, expected.digest);
  EXPECT_EQ(found.drafts_off, "the memory of the predicting layer is full");
}

INSTANTIATE_TEST_SUITE_P(Families, PredictorDrafters, ::testing::ValuesIn(kPredictingModels),
                         [](const auto& model) {
                           const std::string name = model.param;
                           return name.substr(0, name.find('-'));
                         });

}  // namespace
}  // namespace cairn::test::predictor_drafter_test
