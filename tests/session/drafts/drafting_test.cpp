// Drafts change nothing but time: answers of all sorts by the built-in model, with drafters that
// are right, wrong, out of range and anything between, are those without drafts: text, tokens,
// events, probabilities, receipts, why they end, what memory holds, and what comes next.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "cli/commands/load.h"
#include "draft/adversary.h"
#include "engine/lane_batch.h"
#include "session/completion.h"
#include "session/receipt.h"
#include "session/receipt_text.h"
#include "tests/scratch_folder.h"

namespace cairn::session::drafting_test {
namespace {

using Tokens = std::vector<Token>;

struct Asked {
  std::string prompt;
  sample::SamplingParams sampling = {.temperature = 0};
  int32_t token_count_max = 40;
  std::vector<std::string> stop = {};
  ConstraintChoice form = {};
};

std::vector<Asked> questions() {
  std::vector<Asked> asked;
  const std::string count = "<|user|>Please count from 1 to 9.<|assistant|>";
  const std::string story = "Tell me of the sea, the hills and the river: ";
  asked.push_back({.prompt = count});
  asked.push_back({.prompt = story, .sampling = {.temperature = 1.3f, .seed = 3}});
  // Ends in the middle of a draft: by every number of tokens, and by texts.
  for (int32_t count_max = 1; count_max < 18; ++count_max) {
    asked.push_back(
        {.prompt = story, .sampling = {.temperature = 1, .seed = 4}, .token_count_max = count_max});
  }
  for (const char* stop : {"e", "th", ", ", "\n", "an"}) {
    asked.push_back({.prompt = story, .sampling = {.temperature = 1, .seed = 5}, .stop = {stop}});
  }
  asked.push_back(
      {.prompt = story, .sampling = {.temperature = 0.9f, .probability_count = 3, .seed = 6}});
  asked.push_back(
      {.prompt = story,
       .sampling = {
           .temperature = 0.9f, .repeat_penalty = 1.3f, .dry_multiplier = 0.8f, .seed = 7}});
  asked.push_back({.prompt = story, .sampling = {.temperature = 1, .mirostat = 2, .seed = 8}});
  asked.push_back({.prompt = story,
                   .sampling = {.temperature = 1, .seed = 9},
                   .token_count_max = 60,
                   .form = {.json_schema = R"({"type": "object", "properties": {
                       "name": {"type": "string", "maxLength": 9},
                       "numbers": {"type": "array", "items": {"type": "integer"}, "maxItems": 4}},
                       "required": ["name", "numbers"], "additionalProperties": false})"}});
  asked.push_back({.prompt = story,
                   .sampling = {.temperature = 1, .seed = 10},
                   .form = {.regex = "(one|two|three)( and (four|five))*"}});
  return asked;
}

struct Outcome {
  Answer answer;
  std::string events;
  std::string receipt;
  Tokens memory;            // What the sequence holds.
  std::vector<float> next;  // The logits behind it, read by another lane.
  int64_t drafted = 0, accepted = 0;
};

class Drafts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto engine = cli::load_engine("", {.thread_count = 2, .context_tokens = 256});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(engine).value().release();
  }
  static void TearDownTestSuite() { delete engine_; }

  static Outcome answer(const Asked& asked, std::unique_ptr<draft::Speculator> speculator) {
    Outcome outcome;
    engine_->cache().clear();
    const Tokens prompt =
        engine_->tokenizer()->encode(asked.prompt, {.add_special = true, .parse_special = true});
    const auto matcher = make_matcher(asked.form, engine_->text()).value();
    Lane lane(engine_);
    AnswerRequest request{.prompt = prompt,
                          .message_starts = {},
                          .answer_prefix = {},
                          .token_count_max = asked.token_count_max,
                          .matcher = matcher.get(),
                          .stop = asked.stop};
    sample::Sampler sampler(asked.sampling, engine_->tokenizer());
    ReceiptDraft receipt(*engine_, lane.selection(), request, sampler, {});
    request.choices = &receipt.choices;
    auto completion =
        Completion::begin(engine_->tokenizer(), &lane, request, std::move(sampler)).value();
    completion->draft_by(&lane, {std::move(speculator)}, 64);
    drive(lane, *completion, outcome);
    outcome.memory.assign(lane.sequence().tokens().begin(), lane.sequence().tokens().end());
    outcome.answer = completion->finish().value();
    outcome.receipt = receipt_text(std::move(receipt).finish(outcome.answer.finish)).value();
    if (outcome.answer.drafts) {
      outcome.drafted = outcome.answer.drafts->drafted();
      outcome.accepted = outcome.answer.drafts->accepted();
    }
    // Goes on from what was kept, whatever that is.
    Tokens longer = outcome.memory;
    longer.resize(std::min<size_t>(longer.size(), 253));
    longer.insert(longer.end(), 3, Token(77));
    Lane behind(engine_);
    LaneBatch batch(engine_);
    EXPECT_TRUE(behind.start(longer));
    while (behind.wants_rows()) EXPECT_TRUE(batch.step(behind));
    outcome.next.assign(behind.logits().begin(), behind.logits().end());
    return outcome;
  }

  static void drive(Lane& lane, Completion& completion, Outcome& outcome) {
    LaneBatch batch(engine_, true);
    while (!completion.is_done()) {
      if (!lane.wants_rows()) {
        ASSERT_TRUE(completion.advance());
      } else {
        const bool is_drafted = completion.has_drafters() && !lane.is_reading();
        const Status stepped = is_drafted ? batch.step(lane, completion) : batch.step(lane);
        ASSERT_TRUE(completion.take_step(stepped)) << stepped.error().message;
      }
      for (const chat::OutputEvent& event : completion.take_events()) outcome.events += event.text;
    }
    for (const chat::OutputEvent& event : completion.take_events()) outcome.events += event.text;
  }

  static std::unique_ptr<draft::Speculator> adversary(draft::Habit habit, const Outcome& plain,
                                                      const Asked& asked, uint32_t seed) {
    Tokens all =
        engine_->tokenizer()->encode(asked.prompt, {.add_special = true, .parse_special = true});
    all.insert(all.end(), plain.answer.tokens.begin(), plain.answer.tokens.end());
    std::vector<std::unique_ptr<draft::Drafter>> drafters;
    drafters.push_back(std::make_unique<draft::Adversary>(habit, std::move(all), 2048, seed));
    return std::make_unique<draft::Speculator>(std::move(drafters), 2048);
  }

  static Engine* engine_;
};

Engine* Drafts::engine_ = nullptr;

bool operator_equal(const sample::LogProbabilities& a, const sample::LogProbabilities& b) {
  const auto equal = [](const sample::TokenProbability& x, const sample::TokenProbability& y) {
    return x.token == y.token &&
           std::memcmp(&x.log_probability, &y.log_probability, sizeof(float)) == 0;
  };
  return equal(a.chosen, b.chosen) && std::ranges::equal(a.top, b.top, equal);
}

void expect_equal(const Outcome& plain, const Outcome& drafted) {
  EXPECT_EQ(plain.answer.tokens, drafted.answer.tokens);
  EXPECT_EQ(plain.answer.text, drafted.answer.text);
  EXPECT_EQ(plain.events, drafted.events);
  EXPECT_EQ(plain.answer.finish, drafted.answer.finish);
  EXPECT_EQ(plain.answer.stop_text, drafted.answer.stop_text);
  EXPECT_EQ(plain.answer.cut_by, drafted.answer.cut_by);
  EXPECT_EQ(plain.answer.fits_form, drafted.answer.fits_form);
  EXPECT_EQ(plain.receipt, drafted.receipt);
  EXPECT_EQ(plain.memory, drafted.memory);
  EXPECT_TRUE(
      std::ranges::equal(plain.answer.probabilities, drafted.answer.probabilities, operator_equal));
  ASSERT_EQ(plain.next.size(), drafted.next.size());
  EXPECT_EQ(std::memcmp(plain.next.data(), drafted.next.data(), plain.next.size() * sizeof(float)),
            0);
}

TEST_F(Drafts, ChangeNothing) {
  int64_t drafted_count = 0, accepted_count = 0;
  uint32_t seed = 1;
  for (const Asked& asked : questions()) {
    const Outcome plain = answer(asked, nullptr);
    ASSERT_FALSE(HasFailure());
    for (const draft::Habit habit : draft::kHabits) {
      SCOPED_TRACE(testing::Message() << "seed " << asked.sampling.seed << ", at most "
                                      << asked.token_count_max << ", habit " << int(habit));
      const Outcome drafted = answer(asked, adversary(habit, plain, asked, seed++));
      expect_equal(plain, drafted);
      drafted_count += drafted.drafted;
      accepted_count += drafted.accepted;
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(accepted_count, 200);
  EXPECT_GT(drafted_count, 2 * accepted_count);
}

// The context ends inside a draft, or behind its last token.
TEST_F(Drafts, EndWithTheContext) {
  for (const int32_t words : {55, 57, 58, 60, 63}) {
    std::string prompt;
    for (int32_t word = 0; word < words; ++word) prompt += " river stone";
    const Asked asked{.prompt = prompt,
                      .sampling = {.temperature = 1, .ignore_eos = true, .seed = 11},
                      .token_count_max = -1};
    const Outcome plain = answer(asked, nullptr);
    ASSERT_FALSE(HasFailure());
    EXPECT_EQ(plain.answer.finish, FinishReason::context);
    for (const draft::Habit habit : {draft::Habit::right, draft::Habit::changing}) {
      expect_equal(plain, answer(asked, adversary(habit, plain, asked, uint32_t(words))));
    }
  }
}

// Steps are fewer where drafts are right: that is all there is to see of them.
TEST_F(Drafts, SaveSteps) {
  const Asked asked{.prompt = "Tell me of the sea: ",
                    .sampling = {.temperature = 1, .ignore_eos = true, .seed = 12},
                    .token_count_max = 64};
  const Outcome plain = answer(asked, nullptr);
  const Outcome drafted = answer(asked, adversary(draft::Habit::right, plain, asked, 1));
  expect_equal(plain, drafted);
  ASSERT_TRUE(drafted.answer.drafts);
  EXPECT_GT(drafted.accepted, 10);
  EXPECT_EQ(drafted.accepted, drafted.drafted);
}

// Of a step that was cut short for lack of memory nobody learns what it took; its drafts were
// computed nevertheless.
TEST_F(Drafts, AreReportedWhateverBecomesOfTheStep) {
  const Asked asked{.prompt = "Tell me of the sea: ",
                    .sampling = {.temperature = 1, .ignore_eos = true, .seed = 12},
                    .token_count_max = 64};
  const Outcome plain = answer(asked, nullptr);
  const Tokens prompt = engine_->tokenizer()->encode(asked.prompt, {.add_special = true});
  Lane lane(engine_);
  LaneBatch batch(engine_);
  auto completion = Completion::begin(engine_->tokenizer(), &lane,
                                      {.prompt = prompt, .message_starts = {}, .answer_prefix = {}},
                                      sample::Sampler(asked.sampling, engine_->tokenizer()))
                        .value();
  completion->draft_by(&lane, {adversary(draft::Habit::right, plain, asked, 1)}, 64);
  while (lane.wants_rows()) ASSERT_TRUE(batch.step(lane));
  int32_t drafted = 0, accepted = 0;
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(completion->advance());
    const int32_t count = int32_t(completion->propose(63).size());
    completion->check(count);
    const StepItem item = lane.next(count + 1);
    const auto take = [&](size_t, const StepOutputs& outputs) {
      const int32_t taken = completion->take(outputs);
      accepted += taken - 1;
      return taken;
    };
    ASSERT_TRUE(engine_->step(std::span(&item, 1), take));
    ASSERT_TRUE(lane.settle());
    drafted += count;
  }
  completion->stop();
  const Answer made = completion->finish().value();
  EXPECT_GT(accepted, 0);
  EXPECT_EQ(made.drafts->drafted(), drafted);
  EXPECT_EQ(made.drafts->accepted(), accepted);
}

// What was said in an earlier run is found by the next one.
TEST(Recall, ReadsWhatTheStoreHas) {
  const test::ScratchFolder folder;
  EngineOptions options;
  options.cache_dir = folder.file("store");
  Tokens said;
  for (int32_t i = 0; i < 120; ++i) said.push_back(Token(100 + (i * i) % 977));
  {
    const auto engine = cli::load_engine("", options).value();
    Lane lane(engine.get());
    LaneBatch batch(engine.get());
    ASSERT_TRUE(lane.start(said));
    while (lane.wants_rows()) ASSERT_TRUE(batch.step(lane));
    ASSERT_TRUE(lane.finish_turn());
  }
  const auto engine = cli::load_engine("", options).value();
  Drafting drafting(engine.get());
  const ConstraintState free(nullptr, false, nullptr);
  const auto drafted = [&] {
    const std::span<const Token> begin = std::span(said).subspan(40, 20);
    const DraftedText text{.constraint = &free,
                           .tokenizer = engine->tokenizer(),
                           .prompt = begin,
                           .answer_begin = begin.size()};
    const Drafters made = drafting.drafters({}, text);
    for (int step = 0; step < 8; ++step) {  // What is not worth it is not looked for at each step.
      const auto found = made.speculator->propose({.text = begin, .count_max = 8});
      if (!found.tokens.empty()) return Tokens(found.tokens.begin(), found.tokens.end());
    }
    return Tokens();
  };
  EXPECT_EQ(drafted(), Tokens());
  Drafting::Recall recall = Drafting::Recall::later;
  while (recall != Drafting::Recall::done) recall = drafting.recall();
  const Tokens found = drafted();
  ASSERT_GT(found.size(), 2u);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), said.begin() + 60));
}

}  // namespace
}  // namespace cairn::session::drafting_test
