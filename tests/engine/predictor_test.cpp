// The predicting layer against numpy, and that nothing else changes where it is loaded.
#include "engine/drafts/predictor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/engine/predicting_model.h"

namespace cairn::test::predictor_test {
namespace {

std::unique_ptr<Engine> load(const std::string& name, bool has_predictor = true) {
  return load_predicting(name, golden_options(KvType::f32), has_predictor);
}

class Predictors : public ::testing::TestWithParam<const char*> {};

// By tools/make_predictor_reference.py, from the same file. In one step and token by token.
TEST_P(Predictors, ComputeWhatNumpyDoes) {
  std::ifstream in(std::string(CAIRN_SOURCE) + "/tests/engine/predictor_reference.json");
  const nlohmann::json reference = nlohmann::json::parse(in);
  const nlohmann::json& expected = reference["models"][GetParam()];
  const std::vector<Token> tokens = tokens_of(reference["tokens"]);
  const auto engine = load(GetParam());
  Predictor* const predictor = engine->predictor();
  ASSERT_NE(predictor, nullptr);
  const size_t width = size_t(predictor->width());
  std::vector<float> given;
  for (size_t row = 0; row < tokens.size(); ++row) {
    for (size_t j = 0; j < width; ++j) {
      given.push_back(float(std::sin(0.7 * double(row) + 1.3 * double(j))));
    }
  }
  memory::Sequence slowly = predictor->memory().new_sequence();
  for (size_t row = 0; row < tokens.size(); ++row) {
    memory::Sequence at_once = predictor->memory().new_sequence();
    std::vector<float> logits[2];
    for (const bool is_at_once : {false, true}) {
      const size_t first = is_at_once ? 0 : row;
      const int32_t last = int32_t(row - first);
      const StepItem item{
          .sequence = is_at_once ? &at_once : &slowly,
          .tokens = std::span(tokens).subspan(first, row + 1 - first),
          .outputs = std::span(&last, 1),
          .given = std::span(given).subspan(first * width, (row + 1 - first) * width)};
      const auto take = [&](size_t, const StepOutputs& outputs) {
        logits[is_at_once].assign(outputs.logits(0).begin(), outputs.logits(0).end());
        return last + 1;
      };
      ASSERT_TRUE(predictor->step(std::span(&item, 1), take));
    }
    ASSERT_EQ(logits[0].size(), logits[1].size());
    EXPECT_EQ(std::memcmp(logits[0].data(), logits[1].data(), 4 * logits[0].size()), 0) << row;
    for (size_t i = 0; i < reference["shown"].size(); ++i) {
      const size_t id = reference["shown"][i];
      EXPECT_NEAR(double(logits[0][id]), expected["rows"][row][i].get<double>(),
                  1e-3 * expected["deviation"].get<double>())
          << row << " " << id;
    }
  }
}

TEST_P(Predictors, ChangeNothingElse) {
  const auto with = load(GetParam());
  const auto without = load(GetParam(), false);
  EXPECT_EQ(without->predictor(), nullptr);
  EXPECT_EQ(with->memory().layout().groups.size(), without->memory().layout().groups.size());
  EXPECT_EQ(with->runner().plan_bytes(), without->runner().plan_bytes());
  EXPECT_GT(with->predictor()->fixed_bytes().weights, 0u);
  EXPECT_EQ(with->fixed_bytes().total(),
            without->fixed_bytes().total() + with->predictor()->fixed_bytes().total());
  EXPECT_EQ(with->options().memory_budget, without->options().memory_budget);
  EXPECT_EQ(with->parameter_count(), without->parameter_count());
  EXPECT_EQ(with->fingerprint({}).digest(), without->fingerprint({}).digest());
  std::vector<Token> tokens;
  for (int32_t i = 0; i < 50; ++i) tokens.push_back(Token(7 * i % 384));
  std::vector<float> logits[2];
  for (Engine* engine : {with.get(), without.get()}) {
    memory::Sequence sequence = engine->memory().new_sequence();
    logits[engine == with.get()] = append(*engine, sequence, tokens);
  }
  ASSERT_EQ(logits[0].size(), logits[1].size());
  EXPECT_EQ(std::memcmp(logits[0].data(), logits[1].data(), 4 * logits[0].size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Families, Predictors, ::testing::ValuesIn(kPredictingModels),
                         [](const auto& model) {
                           const std::string name = model.param;
                           return name.substr(0, name.find('-'));
                         });

TEST(Predictor, IsNoneWhereTheFileHasNone) {
  EngineOptions options = golden_options(KvType::f16);
  options.loads_predictor = true;
  EXPECT_EQ(load_engine(golden_path("llama", ".gguf"), options)->predictor(), nullptr);
  EXPECT_EQ(load_engine(golden_path("qwen35", ".gguf"), options)->predictor(), nullptr);
}

// What the engine computes behind two tokens: the hidden row, or the vector that the last norm
// makes of it.
std::vector<float> last_row(const std::string& name, std::optional<Pooling> pooling) {
  EngineOptions options = golden_options(KvType::f32);
  options.pooling = pooling;
  const auto engine = load_predicting(name, options, false);
  memory::Sequence sequence = engine->memory().new_sequence();
  const std::vector<Token> tokens = {Token(5), Token(9)};
  const int32_t last = 1;
  const StepItem item{.sequence = &sequence, .tokens = tokens, .outputs = std::span(&last, 1)};
  std::vector<float> row;
  const auto take = [&](size_t, const StepOutputs& outputs) {
    const auto made = pooling ? outputs.logits(0) : outputs.hidden(0);
    row.assign(made.begin(), made.end());
    return 2;
  };
  EXPECT_TRUE(engine->step(std::span(&item, 1), take));
  return row;
}

// Of Qwen behind the model's last norm, of others as they are.
TEST(Predictor, PreparesRows) {
  for (const std::string name : kPredictingModels) {
    std::vector<float> row = last_row(name, std::nullopt);
    const std::vector<float> expected = name == "qwen35-tiny" ? last_row(name, Pooling::last) : row;
    load(name)->predictor()->prepare(row, Predictor::Origin::model);
    ASSERT_EQ(row.size(), expected.size());
    for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], expected[i], 1e-5) << name << i;
  }
}

}  // namespace
}  // namespace cairn::test::predictor_test
