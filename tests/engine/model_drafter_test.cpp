// Drafts of a second model, on models of every kind of memory: the same model is always right,
// others change no bit, and what was read of a text is not read twice.
#include "engine/drafts/model_drafter.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/engine/sampled_job.h"
#include "tests/models/golden_model.h"
#include "tests/small_pages.h"

namespace cairn::test::model_drafter_test {
namespace {

using Tokens = std::vector<Token>;

constexpr int32_t kVocabulary = 384;  // Of the golden models.

Tokens random_tokens(uint32_t seed, int32_t count) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back(Token(int32_t(random() % kVocabulary)));
  return tokens;
}

std::vector<sample::SamplingParams> samplers() {
  return {{.temperature = 0},
          {.temperature = 0.8f},
          {.temperature = 1.5f, .top_k = 0, .top_p = 1, .min_p = 0},
          {.temperature = 1, .top_k = 0, .typical_p = 0.6f, .top_n_sigma = 1.5f},
          {.temperature = 1, .dynatemp_range = 0.5f, .dynatemp_exponent = 1.3f},
          {.temperature = 1, .top_k = 0, .xtc_probability = 0.5f, .xtc_threshold = 0.02f},
          {.temperature = 0.5f,
           .repeat_penalty = 1.2f,
           .presence_penalty = 0.3f,
           .frequency_penalty = 0.2f},
          {.temperature = 0.7f, .dry_multiplier = 0.8f, .dry_last_count = -1, .dry_breakers = {}},
          {.temperature = 1, .mirostat = 1},
          {.temperature = 1, .mirostat = 2},
          {.temperature = 1,
           .adaptive_target = 0.3f,
           .samplers = {"top_k", "min_p", "temperature", "adaptive_p"}},
          {.temperature = 1, .logit_bias = {{.token = Token(7), .bias = 4}}}};
}

std::string path_of(const std::string& name) {
  return golden_path(name, ".gguf");
}

std::unique_ptr<DraftModel> load_draft(const std::string& name, Engine& target,
                                       size_t memory_budget = 0) {
  Result<gguf::File> file = gguf::File::open(path_of(name));
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  Result<std::unique_ptr<DraftModel>> model =
      DraftModel::load(std::move(file).value(), target, {.memory_budget = memory_budget});
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return model ? std::move(model).value() : nullptr;
}

constexpr std::array kModels = {"llama",    "gemma3", "gemma4",        "gemma3n", "llama4",
                                "qwen3moe", "mamba",  "granitehybrid", "lfm2",    "qwen3next"};

// Once the text is read. Where the model would end the answer there is none.
draft::Draft drafted(ModelDrafter& drafter, const Tokens& text) {
  draft::Draft draft;
  for (int32_t slice = 0; slice < 20 && draft.tokens.empty(); ++slice) {
    drafter.propose({.text = text, .count_max = 6}, draft);
  }
  return draft;
}

class ModelDrafters : public SmallPagesTest<const char*> {
 protected:
  std::unique_ptr<Engine> target_ = load_engine(path_of(GetParam()), golden_options(KvType::f16));

  // The next one with the same tokens.
  std::string other_model() const {
    const uint64_t digest = target_->tokenizer()->digest();
    size_t at = size_t(std::find(kModels.begin(), kModels.end(), std::string_view(GetParam())) -
                       kModels.begin());
    for (;;) {
      at = (at + 1) % kModels.size();
      const auto other = load_engine(path_of(kModels[at]), golden_options(KvType::f16));
      if (other->tokenizer()->digest() == digest) return kModels[at];
    }
  }

  // Answers to prompts of several lengths, by all samplers; with drafts and without.
  void compare(DraftModel* drafts, size_t sampler_count, Sampled& sum) {
    const auto all = samplers();
    const auto plain = load_engine(path_of(GetParam()), golden_options(KvType::f16));
    for (size_t index = 0; index < sampler_count; ++index) {
      SampledRequest request{.prompt = random_tokens(uint32_t(index), 3 + 37 * int32_t(index)),
                             .token_count = 40,
                             .sampling = all[index]};
      request.sampling.seed = 5 + index;
      const Sampled expected = sampled_alone(*plain, request);
      request.draft_model = drafts;
      const Sampled found = sampled_alone(*target_, request);
      EXPECT_EQ(found.tokens, expected.tokens) << index;
      EXPECT_EQ(found.digest, expected.digest) << index;
      EXPECT_EQ(found.drafts_off, "") << index;
      sum.checked += found.checked;
      sum.accepted += found.accepted;
    }
  }
};

// At any temperature, by any chain, whatever the chain remembers.
TEST_P(ModelDrafters, TheSameModelIsAlwaysRight) {
  const auto drafts = load_draft(GetParam(), *target_);
  ASSERT_NE(drafts, nullptr);
  Sampled sum;
  compare(drafts.get(), samplers().size(), sum);
  EXPECT_EQ(sum.accepted, sum.checked);
  // Most of the 40 tokens of each answer.
  EXPECT_GT(sum.checked, int64_t(samplers().size()) * 20);
}

TEST_P(ModelDrafters, OthersChangeNoBit) {
  const auto drafts = load_draft(other_model(), *target_);
  ASSERT_NE(drafts, nullptr);
  Sampled sum;
  compare(drafts.get(), 4, sum);
  EXPECT_GT(sum.checked, 0);
  EXPECT_LT(sum.accepted, sum.checked);
}

// Rewinds, edits and other texts: each draft is that of a drafter that has seen nothing else.
TEST_P(ModelDrafters, FollowRewindsAndEdits) {
  const auto drafts = load_draft(GetParam(), *target_);
  const auto fresh = load_draft(GetParam(), *target_);
  const sample::Sampler sampler({.temperature = 1, .seed = 3});
  ModelDrafter drafter(drafts.get(), &sampler);
  std::mt19937 random(1);
  Tokens text = random_tokens(9, 60);
  size_t draft_count = 0;
  for (int32_t round = 0; round < 40; ++round) {
    fresh->engine().cache().clear();
    ModelDrafter other(fresh.get(), &sampler);
    draft::Draft found = drafted(drafter, text);
    draft::Draft expected = drafted(other, text);
    ASSERT_EQ(drafter.off_reason(), "") << round;
    // How far they go depends on what each has seen come true, and on clocks.
    const size_t shared = std::min(found.tokens.size(), expected.tokens.size());
    EXPECT_EQ(found.tokens.empty(), expected.tokens.empty()) << round;
    draft_count += shared;
    found.tokens.resize(shared);
    expected.tokens.resize(shared);
    EXPECT_EQ(found.tokens, expected.tokens) << round;
    // Some of the draft comes true, or some of the text goes away, and something else follows.
    if (round % 3 == 0) {
      text.resize(text.size() - 1 - random() % (text.size() / 2));
    } else {
      text.insert(text.end(), found.tokens.begin(),
                  found.tokens.begin() + std::ptrdiff_t(random() % (shared + 1)));
    }
    for (auto more = 1 + random() % 20; more > 0; --more) {
      text.push_back(Token(int32_t(random() % kVocabulary)));
    }
  }
  EXPECT_GT(draft_count, 30u);
}

INSTANTIATE_TEST_SUITE_P(Families, ModelDrafters, ::testing::ValuesIn(kModels),
                         [](const auto& model) { return std::string(model.param); });

class FalconDrafter : public ::testing::Test {
 protected:
  const SmallPages small_pages_;
  std::unique_ptr<Engine> target_ = load_engine(path_of("falcon"), golden_options(KvType::f16));
  const sample::Sampler sampler_{{.temperature = 0}};

  static size_t propose(ModelDrafter& drafter, const Tokens& text) {
    draft::Draft draft;
    drafter.propose({.text = text, .count_max = 4}, draft);
    return draft.tokens.size();
  }
  // Until there is a draft: how often there was none.
  static int32_t read(ModelDrafter& drafter, const Tokens& text) {
    int32_t count = 0;
    while (propose(drafter, text) == 0 && count < 100) ++count;
    return count;
  }
};

// Answers that are over before anything could be drafted choose at the same positions too.
TEST_F(FalconDrafter, WithoutADraftTokensAreTheSame) {
  const auto drafts = load_draft("falcon", *target_);
  const auto plain = load_engine(path_of("falcon"), golden_options(KvType::f16));
  for (int32_t index = 0; index < 30; ++index) {
    SampledRequest request{.prompt = random_tokens(uint32_t(index), 20),
                           .token_count = 2 + index % 2,
                           .sampling = {.temperature = 1, .top_k = 0, .seed = uint64_t(index)}};
    const Sampled expected = sampled_alone(*plain, request);
    request.draft_model = drafts.get();
    const Sampled found = sampled_alone(*target_, request);
    EXPECT_EQ(found.tokens, expected.tokens) << index;
  }
}

// A slice at each call, and of a long text the end alone.
TEST_F(FalconDrafter, ReadsInSlices) {
  const auto drafts = load_draft("falcon", *target_, size_t(64) << 20);
  const int32_t rows = drafts->engine().runner().row_count_max();
  {
    ModelDrafter drafter(drafts.get(), &sampler_);
    Tokens text = random_tokens(1, 3 * rows + 1);
    for (int32_t slice = 1; slice <= 3; ++slice) {
      EXPECT_EQ(propose(drafter, text), 0u);
      EXPECT_TRUE(drafter.is_reading());
      EXPECT_EQ(drafter.computed_rows(), slice * rows);
      text.push_back(Token(slice));
    }
    EXPECT_GT(propose(drafter, text), 0u);
    EXPECT_FALSE(drafter.is_reading());
    EXPECT_LE(drafter.computed_rows(), 3 * rows + 4 + 4);
  }
  ModelDrafter drafter(drafts.get(), &sampler_);
  Tokens text = random_tokens(2, 1200);
  ASSERT_GE(drafts->window_tokens(), 2000);
  EXPECT_EQ(read(drafter, text), 512 / rows);
  EXPECT_LE(drafter.computed_rows(), 512 + 4);
  // What is far behind is not read either, and is no longer an investment.
  const Tokens more = random_tokens(3, 600);
  text.insert(text.end(), more.begin(), more.end());
  EXPECT_EQ(propose(drafter, text), 0u);
  EXPECT_FALSE(drafter.is_reading());
  read(drafter, text);
  EXPECT_LE(drafter.computed_rows(), 2 * (512 + 4));
}

// Texts longer than what the draft model can have in memory, up to any length.
TEST_F(FalconDrafter, GoesOnBeyondItsWindow) {
  const auto unlimited = load_draft("falcon", *target_);
  const memory::Sequence empty = unlimited->engine().memory().new_sequence();
  const size_t bytes = unlimited->engine().memory().plan(empty, 300).new_bytes;
  const auto drafts = load_draft("falcon", *target_, bytes);
  ASSERT_NE(drafts, nullptr);
  const int32_t window = drafts->window_tokens();
  EXPECT_GT(window, 40);
  EXPECT_LE(window, 150);
  ModelDrafter drafter(drafts.get(), &sampler_);
  Tokens text = random_tokens(4, 10);
  int32_t drafted = 0;
  for (int32_t i = 0; i < 4 * window; ++i) {
    drafted += propose(drafter, text) > 0 ? 1 : 0;
    text.push_back(Token(i % kVocabulary));
  }
  EXPECT_EQ(drafter.off_reason(), "");
  // It ends where the model would end the answer.
  EXPECT_GE(drafted, 4 * window - 20);
}

TEST_F(FalconDrafter, TakesUpWhatAnotherOneHasRead) {
  const auto drafts = load_draft("falcon", *target_);
  Tokens text = random_tokens(8, 400);
  {
    ModelDrafter drafter(drafts.get(), &sampler_, 1);
    read(drafter, text);
  }
  EXPECT_EQ(drafts->engine().cache().entry_count(), 1u);
  text.push_back(Token(100));
  ModelDrafter next(drafts.get(), &sampler_, 1);
  EXPECT_EQ(read(next, text), 0);
  EXPECT_LE(next.computed_rows(), 2 + 3);
  // Never of another tenant.
  ModelDrafter other(drafts.get(), &sampler_, 2);
  EXPECT_GT(read(other, text), 0);
  EXPECT_GE(other.computed_rows(), 401);
}

// The request goes on without drafts, what was held is given back, and the reason is told.
TEST_F(FalconDrafter, EndsWhereMemoryIsFull) {
  const auto drafts = load_draft("falcon", *target_, size_t(256) << 10);
  ASSERT_NE(drafts, nullptr);
  Engine& engine = drafts->engine();
  // Somebody else holds all of it.
  std::vector<memory::Sequence> held;
  for (int32_t i = 0; i < 1000; ++i) {
    held.push_back(engine.memory().new_sequence());
    const Tokens tokens = random_tokens(uint32_t(i), 60);
    const StepItem item{.sequence = &held.back(), .tokens = tokens};
    if (!engine.step(std::span(&item, 1))) break;
  }
  ASSERT_LT(held.size(), 1000u);
  SampledRequest request{.prompt = random_tokens(6, 30), .token_count = 20};
  const Sampled expected = sampled_alone(*target_, request);
  request.draft_model = drafts.get();
  const Sampled found = sampled_alone(*target_, request);
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(found.digest, expected.digest);
  EXPECT_EQ(found.checked, 0);
  EXPECT_EQ(found.drafts_off, "the draft model's memory is full");
  held.clear();
  EXPECT_EQ(engine.memory().usage().used_bytes(), 0u);
  const Sampled again = sampled_alone(*target_, request);
  EXPECT_EQ(again.tokens, expected.tokens);
  EXPECT_GT(again.accepted, 0);
  // What stays is the cache's alone.
  engine.cache().clear();
  EXPECT_EQ(engine.memory().usage().used_bytes(), 0u);
}

}  // namespace
}  // namespace cairn::test::model_drafter_test
