// A draft model on prose: the built-in model, and what `cairn quantize` makes of it. They agree
// nearly always, at any temperature; and answers are those without drafts.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/drafts/draft_model.h"
#include "engine/drafts/text_drafter.h"
#include "engine/lane_batch.h"
#include "quantize/quantize.h"
#include "session/completion.h"
#include "session/conversation.h"
#include "tests/models/golden_model.h"
#include "tests/sanitized.h"
#include "tests/scratch_folder.h"
#include "tests/twin_vocabulary.h"

namespace cairn::session::model_drafts_test {
namespace {

std::string nano() {
  return std::string(CAIRN_FIXTURES) + "/nano/nano-f16.gguf";
}

struct Outcome {
  std::vector<Token> tokens;
  std::string text;
  int32_t drafted = 0, accepted = 0, steps = 0;
};

class ModelDrafts : public ::testing::Test {
 protected:
  Outcome answer(const Prompt& prompt, const sample::SamplingParams& sampling, DraftModel* model) {
    Lane lane(target_.get());
    auto completion = Completion::begin(target_->tokenizer(), &lane,
                                        {.prompt = prompt.tokens,
                                         .message_starts = {},
                                         .answer_prefix = {},
                                         .token_count_max = 60},
                                        sample::Sampler(sampling, target_->tokenizer()))
                          .value();
    if (model != nullptr) {
      std::vector<std::unique_ptr<draft::Drafter>> drafters;
      drafters.push_back(make_model_drafter(model, &completion->sampler()));
      // Time stands still: what drafts are worth is not asked.
      completion->draft_by(&lane,
                           {std::make_unique<draft::Speculator>(
                               std::move(drafters), target_->size().vocabulary_count,
                               draft::SpeculatorOptions{.clock = [] { return 0.0; }})},
                           16);
    }
    LaneBatch batch(target_.get(), true);
    Outcome outcome;
    while (!completion->is_done()) {
      if (!lane.wants_rows()) {
        EXPECT_TRUE(completion->advance());
        continue;
      }
      const bool is_drafted = completion->has_drafters() && !lane.is_reading();
      EXPECT_TRUE(
          completion->take_step(is_drafted ? batch.step(lane, *completion) : batch.step(lane)));
      outcome.steps += lane.is_reading() ? 0 : 1;
    }
    const Answer made = completion->finish().value();
    outcome.tokens = made.tokens;
    outcome.text = made.text;
    if (made.drafts) {
      outcome.drafted = made.drafts->drafted();
      outcome.accepted = made.drafts->accepted();
    }
    return outcome;
  }

  // Of all conversations that the model was tested with: how much of the drafts was right.
  double accepted(DraftModel* model, sample::SamplingParams sampling) {
    std::ifstream file(std::string(CAIRN_FIXTURES) + "/nano/expected.json");
    Outcome sum;
    const auto conversations = nlohmann::json::parse(file);
    for (size_t i = 0; i < conversations.size(); i += test::kIsSlow ? 4 : 1) {
      const auto& conversation = conversations[i];
      std::vector<chat::Message> messages;
      for (const auto& message : conversation["messages"]) {
        messages.push_back({message["role"], message["content"]});
      }
      const Prompt prompt = encode_conversation(*target_, messages).value();
      ++sampling.seed;
      const Outcome plain = answer(prompt, sampling, nullptr);
      const Outcome found = answer(prompt, sampling, model);
      EXPECT_EQ(found.tokens, plain.tokens);
      EXPECT_EQ(found.text, plain.text);
      sum.drafted += found.drafted;
      sum.accepted += found.accepted;
    }
    EXPECT_GT(sum.drafted, 100);
    return double(sum.accepted) / double(sum.drafted);
  }

  std::unique_ptr<Engine> target_ = test::load_engine(
      nano(), {.thread_count = 2, .context_tokens = 1024, .memory_budget = size_t(64) << 20});
};

TEST_F(ModelDrafts, OfAQuantizedTwinAreNearlyAlwaysRight) {
  const test::ScratchFolder folder;
  for (const char* type : {"Q8_0", "Q4_0"}) {
    const std::string path = folder.file(std::string(type) + ".gguf");
    ASSERT_TRUE(
        quantize::quantize({.in_path = nano(), .out_path = path, .mix = type, .thread_count = 2}));
    const auto model = DraftModel::load(gguf::File::open(path).value(), *target_).value();
    EXPECT_GT(accepted(model.get(), {.temperature = 0}), 0.95) << type;
    // Shared noise: at this temperature the draft's own choice is no less often right.
    EXPECT_GT(accepted(model.get(), {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}), 0.95)
        << type;
  }
}

// The same model with other ids, and with fewer words, which it was not made for.
TEST_F(ModelDrafts, OfATwinWithAnotherVocabularyAreOftenRight) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("twin.gguf");
  for (const auto& [dropped, expected] : {std::pair(0.0, 0.95), std::pair(0.1, 0.7)}) {
    test::write_twin(nano(), path, dropped);
    const auto model = DraftModel::load(gguf::File::open(path).value(), *target_).value();
    ASSERT_TRUE(model->drafts_by_text());
    EXPECT_GT(accepted(model.get(), {.temperature = 0}), expected) << dropped;
    // Without shared noise: as often as the likeliest token is the one that is drawn.
    EXPECT_GT(accepted(model.get(), {.temperature = 0.8f}), expected - 0.15) << dropped;
  }
}

}  // namespace
}  // namespace cairn::session::model_drafts_test
