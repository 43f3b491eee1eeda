// A sequence reads only what nobody holds, on models of every kind of memory; and whatever it
// reused, its logits are, bit for bit, those of an engine that has read nothing else.
#include "engine/generator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/models/golden_model.h"
#include "tests/small_pages.h"

namespace cairn::test::generator_test {
namespace {

using Tokens = std::vector<Token>;

// One model of each kind of memory: full, windows, chunks, shared, and the kinds of recurrence.
std::vector<std::string> models_of_every_kind() {
  const std::vector<std::string>& supported = supported_cases();
  std::vector<std::string> names;
  for (const char* name : {"llama", "gemma3", "gemma4", "gemma3n", "llama4", "qwen3moe",
                           "granitehybrid", "mamba", "lfm2", "qwen3next"}) {
    if (std::binary_search(supported.begin(), supported.end(), name)) names.emplace_back(name);
  }
  return names;
}

Tokens random_tokens(uint32_t seed, int32_t count) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (int32_t index = 0; index < count; ++index) tokens.push_back(Token(int32_t(random() % 384)));
  return tokens;
}

Tokens operator+(const Tokens& a, const Tokens& b) {
  Tokens sum = a;
  sum.insert(sum.end(), b.begin(), b.end());
  return sum;
}

constexpr int32_t kLogStep = 8;

EngineOptions small_steps() {
  EngineOptions options = golden_options(KvType::f16);
  options.row_count_max = 16;
  options.log_step = kLogStep;
  return options;
}

class GeneratorTest : public test::SmallPagesTest<std::string> {
 protected:
  void SetUp() override { open(small_steps()); }

  void open(EngineOptions options) {
    engine_ = load_engine(golden_path(GetParam(), ".gguf"), options);
    ASSERT_NE(engine_, nullptr);
    fresh_ = load_engine(golden_path(GetParam(), ".gguf"), golden_options(KvType::f16));
    ASSERT_NE(fresh_, nullptr);
  }

  bool is_recurrent() const { return engine_->memory().layout().recurrent_group >= 0; }

  void expect_fresh(const Generator& generator) {
    const Tokens tokens(generator.sequence().tokens().begin(), generator.sequence().tokens().end());
    const std::vector<float> held(generator.logits().begin(), generator.logits().end());
    memory::Sequence sequence = fresh_->memory().new_sequence();
    std::vector<float> logits;
    for (size_t begin = 0; begin < tokens.size(); begin += 128) {
      const auto part =
          std::span(tokens).subspan(begin, std::min<size_t>(128, tokens.size() - begin));
      logits = append(*fresh_, sequence, part);
    }
    ASSERT_GE(logits.size(), held.size());
    const float* last = logits.data() + logits.size() - held.size();
    EXPECT_EQ(std::memcmp(held.data(), last, held.size() * sizeof(float)), 0);
  }

  PromptReport read(Generator& generator, const Tokens& prompt,
                    const std::vector<int32_t>& message_starts = {}) {
    Result<PromptReport> report = generator.read(prompt, {.message_starts = message_starts});
    EXPECT_TRUE(bool(report)) << (report ? "" : report.error().message);
    if (!report) return {};
    EXPECT_EQ(report->reused_tokens + report->computed_tokens, int32_t(prompt.size()));
    EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), generator.sequence().tokens().begin(),
                           generator.sequence().tokens().end()));
    return *report;
  }

  // An answer of given tokens.
  void answer(Generator& generator, const Tokens& tokens) {
    for (const Token token : tokens) {
      const Status advanced = generator.advance(token);
      ASSERT_TRUE(bool(advanced)) << advanced.error().message;
    }
    ASSERT_TRUE(bool(generator.finish_turn()));
  }

  std::unique_ptr<Engine> engine_, fresh_;
};

TEST_P(GeneratorTest, AnsweringAnewReadsNothing) {
  const Tokens prompt = random_tokens(1, 57);
  Generator generator(engine_.get());
  EXPECT_EQ(read(generator, prompt, {40}).computed_tokens, 57);
  expect_fresh(generator);
  for (uint32_t round = 0; round < 3; ++round) {
    answer(generator, random_tokens(10 + round, 13));
    expect_fresh(generator);
    const PromptReport report = read(generator, prompt, {40});
    EXPECT_EQ(report.computed_tokens, 0);
    EXPECT_TRUE(report.plan.logits_ready);
    expect_fresh(generator);
  }
}

TEST_P(GeneratorTest, StoppingAndContinuingReadsNothing) {
  Generator generator(engine_.get());
  read(generator, random_tokens(1, 40));
  for (const Token token : random_tokens(2, 11)) ASSERT_TRUE(bool(generator.advance(token)));
  const std::vector<float> before(generator.logits().begin(), generator.logits().end());
  const Tokens held(generator.sequence().tokens().begin(), generator.sequence().tokens().end());
  // Somebody else computes meanwhile; the logits come back by themselves.
  Generator other(engine_.get());
  read(other, random_tokens(3, 20));
  EXPECT_EQ(std::memcmp(before.data(), generator.logits().data(), before.size() * sizeof(float)),
            0);
  EXPECT_EQ(read(generator, held).computed_tokens, 0);
  EXPECT_EQ(std::memcmp(before.data(), generator.logits().data(), before.size() * sizeof(float)),
            0);
  ASSERT_TRUE(bool(generator.advance(Token(9))));
  expect_fresh(generator);
  expect_fresh(other);
}

// All rows of a prompt, each once.
struct PromptRows final : PromptReader {
  int32_t count = 0;
  std::vector<float> logits;

  void take(int32_t position, const StepOutputs& rows) override {
    EXPECT_EQ(position, count);
    for (int32_t row = 0; row < rows.count(); ++row) {
      logits.insert(logits.end(), rows.logits(row).begin(), rows.logits(row).end());
    }
    count += rows.count();
  }
};

TEST_P(GeneratorTest, LogitsOfAPromptAreReadWhateverMemoryHolds) {
  const Tokens prompt = random_tokens(1, 90);
  Generator before(engine_.get());
  read(before, prompt);
  answer(before, random_tokens(2, 5));
  PromptRows rows;
  Generator generator(engine_.get());
  generator.read_logits(&rows);
  EXPECT_FALSE(generator.reuses_prefixes());
  Result<PromptReport> report = generator.start(prompt);
  ASSERT_TRUE(bool(report));
  EXPECT_EQ(report->computed_tokens, 90);
  EXPECT_EQ(report->plan.limited_by, "outputs");
  LaneBatch batch(engine_.get());
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(bool(batch.step(generator)));
  // Others need the memory; then it goes on where it was, or before.
  generator.preempt();
  EXPECT_LE(generator.resume_plan().resume, rows.count);
  ASSERT_TRUE(bool(generator.resume()));
  while (generator.wants_rows()) ASSERT_TRUE(bool(batch.step(generator)));
  EXPECT_TRUE(generator.reuses_prefixes());
  EXPECT_EQ(rows.count, 90);
  memory::Sequence sequence = fresh_->memory().new_sequence();
  const std::vector<float> fresh = append(*fresh_, sequence, prompt);
  ASSERT_EQ(rows.logits.size(), fresh.size());
  EXPECT_EQ(std::memcmp(rows.logits.data(), fresh.data(), fresh.size() * sizeof(float)), 0);
  expect_fresh(generator);
  answer(generator, random_tokens(3, 5));
  EXPECT_EQ(rows.count, 90) << "only the prompt's";
  Generator after(engine_.get());
  EXPECT_EQ(read(after, prompt).computed_tokens, 0) << "what others share is unharmed";
}

TEST_P(GeneratorTest, TheNextTurnReadsOnlyWhatIsNew) {
  Generator generator(engine_.get());
  Tokens held = random_tokens(1, 50);
  read(generator, held);
  for (uint32_t turn = 0; turn < 3; ++turn) {
    const Tokens said = random_tokens(20 + turn, 7);
    answer(generator, said);
    const Tokens message = random_tokens(30 + turn, 21);
    const int32_t start = int32_t(held.size() + said.size());
    held = held + said + message;
    EXPECT_EQ(read(generator, held, {start}).computed_tokens, 21);
    expect_fresh(generator);
  }
}

TEST_P(GeneratorTest, GoingBackIntoTheAnswerReadsNothingAgain) {
  const Tokens prompt = random_tokens(1, 50), said = random_tokens(2, 19);
  Generator generator(engine_.get());
  read(generator, prompt, {30});
  answer(generator, said);
  for (int32_t kept = 19; kept > 19 - kLogStep; --kept) {
    const Tokens beginning = prompt + Tokens(said.begin(), said.begin() + kept);
    const PromptReport report = read(generator, beginning + random_tokens(uint32_t(kept), 5), {30});
    EXPECT_EQ(report.computed_tokens, 5) << "kept " << kept;
    EXPECT_EQ(report.plan.forward_tokens, 0);
    EXPECT_LE(report.plan.recurrence_steps, is_recurrent() ? kLogStep : 0);
    expect_fresh(generator);
  }
}

TEST_P(GeneratorTest, AnAbandonedBranchIsTakenUpAgain) {
  const Tokens parent = random_tokens(1, 60), first = random_tokens(2, 33);
  const Tokens second = random_tokens(3, 40);
  Generator generator(engine_.get());
  read(generator, parent + first, {60});
  answer(generator, random_tokens(4, 9));
  const PromptReport branch = read(generator, parent + second, {60});
  EXPECT_EQ(branch.computed_tokens, 40);
  expect_fresh(generator);
  answer(generator, random_tokens(5, 9));
  const Tokens back = parent + first + random_tokens(4, 9) + random_tokens(6, 12);
  const PromptReport report = read(generator, back, {60, 102});
  EXPECT_TRUE(report.from_cache);
  EXPECT_EQ(report.computed_tokens, 12);
  expect_fresh(generator);
}

TEST_P(GeneratorTest, ASharedBeginningIsReadOnce) {
  const Tokens system = random_tokens(1, 45);
  {
    Generator first(engine_.get());
    read(first, system + random_tokens(2, 30), {45});
    answer(first, random_tokens(3, 10));
  }
  for (uint32_t chat = 0; chat < 3; ++chat) {
    Generator generator(engine_.get());
    const PromptReport report = read(generator, system + random_tokens(50 + chat, 17), {45});
    EXPECT_TRUE(report.from_cache);
    EXPECT_EQ(report.computed_tokens, 17);
    expect_fresh(generator);
  }
}

// The same document with one question after another, in one message or in none: only the first
// reading is a whole one. Nothing of this costs a step more.
TEST_P(GeneratorTest, AnotherQuestionBehindADocumentReadsOnlyTheQuestion) {
  const Tokens document = random_tokens(1, 290);
  for (const bool has_messages : {false, true}) {
    open(small_steps());
    Generator generator(engine_.get());
    for (uint32_t question = 0; question < 4; ++question) {
      const Tokens asked = random_tokens(10 + question, 9);
      const std::vector<int32_t> starts(has_messages ? 1 : 0, 2);
      int32_t steps = 0;
      Result<PromptReport> report = generator.read(
          document + asked, {.message_starts = starts, .on_progress = [&](int32_t, int32_t) {
                               ++steps;
                               return true;
                             }});
      ASSERT_TRUE(report);
      EXPECT_EQ(steps, (report->computed_tokens + 15) / 16) << "no step for an anchor";
      const int32_t bar = question == 0 ? 299 : question == 1 ? 9 + 64 : 9;
      EXPECT_LE(report->computed_tokens, bar) << "question " << question + 1;
      expect_fresh(generator);
      answer(generator, random_tokens(20 + question, 3 * kLogStep));
    }
  }
}

// Where sequences part, whatever stands behind: agents with one system prompt, each with a long
// task. The second one pays for the place, and nobody does after it.
TEST_P(GeneratorTest, WhereSequencesPartIsPaidOnce) {
  const Tokens common = random_tokens(1, 150);
  for (uint32_t agent = 0; agent < 4; ++agent) {
    Generator generator(engine_.get());
    const PromptReport report = read(generator, common + random_tokens(10 + agent, 140));
    EXPECT_LE(report.computed_tokens, agent < 2 ? 290 : 140) << "agent " << agent + 1;
    expect_fresh(generator);
    answer(generator, random_tokens(20 + agent, 3 * kLogStep));
  }
}

// Places from which another end is soon read stay for a turn only: a state is large.
TEST_P(GeneratorTest, ClosingAnchorsGoWithTheNextTurn) {
  Generator generator(engine_.get());
  Tokens held = random_tokens(1, 120);
  for (uint32_t turn = 0; turn < 3; ++turn) {
    read(generator, held, {});
    int32_t closing_count = 0;
    for (const memory::Anchor& anchor : generator.sequence().anchors()) {
      closing_count += int32_t(anchor.kind == memory::AnchorKind::closing);
    }
    const bool is_limited = is_recurrent() || GetParam() != "llama";
    EXPECT_LE(closing_count, is_limited ? 1 : 0);
    const Tokens said = random_tokens(30 + turn, 5);
    answer(generator, said);
    held = held + said + random_tokens(40 + turn, 80);
  }
}

TEST_P(GeneratorTest, BordersOfMessagesDoNotCutSteps) {
  Generator generator(engine_.get());
  const Tokens prompt = random_tokens(1, 40);
  const std::vector<int32_t> starts = {3, 9, 16, 17, 39};
  std::vector<int32_t> done;
  ASSERT_TRUE(bool(
      generator.read(prompt, {.message_starts = starts, .on_progress = [&](int32_t now, int32_t) {
                                done.push_back(now);
                                return true;
                              }})));
  EXPECT_EQ(done, (std::vector<int32_t>{16, 32, 40}));
  std::vector<int32_t> anchors;
  for (const memory::Anchor& anchor : generator.sequence().anchors()) {
    if (anchor.kind == memory::AnchorKind::message_start) anchors.push_back(anchor.position);
  }
  EXPECT_EQ(anchors, starts);
  for (const int32_t start : starts) {
    Generator branch(engine_.get());
    EXPECT_EQ(engine_->memory().plan(generator.sequence(), start).resume, start);
  }
}

TEST_P(GeneratorTest, AStoppedPromptKeepsWhatWasRead) {
  const Tokens tokens = random_tokens(1, 80);
  Generator generator(engine_.get());
  const auto stopped =
      generator.read(tokens, {.on_progress = [](int32_t done, int32_t) { return done < 32; }});
  ASSERT_FALSE(bool(stopped));
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_EQ(generator.sequence().length(), 32);
  EXPECT_EQ(read(generator, tokens).reused_tokens, 32);
  expect_fresh(generator);
}

TEST_P(GeneratorTest, ManyChatsInALittleMemory) {
  size_t chat_bytes = 0;
  {
    Generator generator(engine_.get());
    read(generator, random_tokens(1, 90), {50});
    answer(generator, random_tokens(2, 12));
    chat_bytes = engine_->memory().usage().used_bytes();
  }
  EngineOptions options = small_steps();
  options.memory_budget = chat_bytes * 5 / 2;
  open(options);
  for (uint32_t chat = 0; chat < 9; ++chat) {
    Generator generator(engine_.get());
    read(generator, random_tokens(1 + chat % 5, 90), {50});
    expect_fresh(generator);
    answer(generator, random_tokens(2, 12));
    EXPECT_LE(engine_->memory().usage().used_bytes(), options.memory_budget);
  }
}

TEST_P(GeneratorTest, AFullContextIsAnErrorOrShifts) {
  EngineOptions options = small_steps();
  options.context_tokens = 64;
  open(options);
  const Tokens prompt = random_tokens(1, 101);
  {
    Generator generator(engine_.get());
    const auto refused = generator.read(prompt);
    ASSERT_FALSE(bool(refused));
    EXPECT_EQ(refused.error().message, "context: 101 tokens are needed, 64 fit");
    read(generator, Tokens(prompt.begin(), prompt.begin() + 64));
    EXPECT_EQ(generator.room(), 0);
    EXPECT_FALSE(bool(generator.advance(Token(1))));
  }
  options.context_policy = ContextPolicy::shift;
  options.shift_keep = 10;
  open(options);
  Generator generator(engine_.get());
  const std::vector<int32_t> starts = {5, 90};
  const PromptReport report = generator.read(prompt, {.message_starts = starts}).value();
  // All between the kept tokens and the last message: its turn goes as a whole.
  EXPECT_EQ(report.left_out_tokens, 80);
  EXPECT_EQ(report.left_out_turns, 1);
  const Tokens beginning(prompt.begin(), prompt.begin() + 10),
      end(prompt.begin() + 90, prompt.end());
  Tokens held = beginning + end;
  EXPECT_EQ(Tokens(generator.sequence().tokens().begin(), generator.sequence().tokens().end()),
            held);
  EXPECT_EQ(generator.sequence().anchors()[1].position, 10);
  expect_fresh(generator);
  for (const Token token : random_tokens(7, 60)) {
    EXPECT_GT(generator.room(), 0);
    ASSERT_TRUE(bool(generator.advance(token)));
    held.push_back(token);
    if (held.size() > 64) held.erase(held.begin() + 10, held.begin() + 37);
    ASSERT_EQ(generator.sequence().length(), int32_t(held.size()));
  }
  // Of the prompt, and by one shift: half of the 54 behind the kept ones, as one turn is left.
  EXPECT_EQ(generator.left_out_tokens(), 80 + 27);
  EXPECT_EQ(Tokens(generator.sequence().tokens().begin(), generator.sequence().tokens().end()),
            held);
  expect_fresh(generator);
}

// In a conversation whole turns go, oldest first; what will happen is told before.
TEST_P(GeneratorTest, AShiftLeavesOutWholeTurns) {
  EngineOptions options = small_steps();
  options.context_tokens = 64;
  options.context_policy = ContextPolicy::shift;
  open(options);
  Generator generator(engine_.get());
  const Tokens prompt = random_tokens(1, 60);
  const std::vector<int32_t> starts = {6, 20, 34, 48};
  read(generator, prompt, starts);
  Tokens text = prompt;
  for (const Token token : random_tokens(2, 4)) {
    ASSERT_TRUE(bool(generator.advance(token)));
    text.push_back(token);
  }
  const ContextShift told = generator.next_shift().value();
  EXPECT_EQ(told.left_out_turns, 3);
  EXPECT_EQ(told.left_out_tokens, 42);
  text.push_back(Token(7));
  ASSERT_TRUE(bool(generator.push(Token(7))));
  EXPECT_EQ(generator.demand().rows, told.read_tokens);
  EXPECT_LE(told.read_tokens, 65 - 42);
  LaneBatch batch(engine_.get());
  while (generator.wants_rows()) ASSERT_TRUE(bool(batch.step(generator)));
  EXPECT_EQ(generator.left_out_turns(), 3);
  const Tokens system(text.begin(), text.begin() + 6), last(text.begin() + 48, text.end());
  EXPECT_EQ(Tokens(generator.sequence().tokens().begin(), generator.sequence().tokens().end()),
            system + last);
  expect_fresh(generator);
  // The next turn is cut at the same place, so that it reads only what is new.
  ASSERT_TRUE(bool(generator.finish_turn()));
  const std::vector<int32_t> next_starts = {6, 20, 34, 48, 65};
  const Tokens next = text + random_tokens(3, 9);
  const memory::ResumePlan plan = generator.plan(next, next_starts);
  EXPECT_EQ(plan.resume, 65 - 42) << "all that was read";
  const PromptReport report = generator.read(next, {.message_starts = next_starts}).value();
  EXPECT_EQ(report.computed_tokens, 9);
  EXPECT_EQ(report.left_out_turns, 3);
  expect_fresh(generator);
}

// What is sampled behind a shift is not what was sampled before it: noise is keyed by the position
// in the whole text, and penalties still see what was left out.
TEST_P(GeneratorTest, NoiseDoesNotRepeatAfterAShift) {
  EngineOptions options = small_steps();
  options.context_tokens = 64;
  options.context_policy = ContextPolicy::shift;
  open(options);
  Generator generator(engine_.get());
  read(generator, random_tokens(1, 4));
  sample::SamplingParams params;
  params.seed = 1;
  params.temperature = 1000;  // Noise alone decides.
  params.top_k = 0;
  params.top_p = 1;
  params.min_p = 0;
  sample::Sampler sampler(params);
  Tokens sampled;
  for (int32_t count = 0; count < 200; ++count) {
    Result<Token> token = generator.sample(sampler);
    ASSERT_TRUE(bool(token));
    sampled.push_back(*token);
    ASSERT_TRUE(bool(generator.advance(sampled.back())));
  }
  EXPECT_GT(generator.left_out_tokens(), 96);
  // A shift leaves out 32 tokens: keyed by the place in the context, the same 32 would come again.
  for (size_t begin = 100; begin + 32 <= sampled.size(); begin += 4) {
    const auto at = sampled.begin() + std::ptrdiff_t(begin);
    EXPECT_FALSE(std::equal(at, at + 16, at - 32)) << begin;
  }
}

TEST_P(GeneratorTest, WindowsAreKeptFromTheLastMessageOnOrAltogether) {
  const Tokens prompt = random_tokens(1, 300);
  const auto window_pages = [&] {
    Generator generator(engine_.get());
    read(generator, prompt, {290});
    expect_fresh(generator);
    int32_t pages = 0;
    for (const memory::GroupUsage& group : engine_->memory().usage(generator.sequence())) {
      if (group.window > 0) pages += group.blocks;
    }
    return pages;
  };
  const int32_t needed = window_pages();
  EngineOptions options = small_steps();
  options.keeps_all_windows = true;
  open(options);
  const int32_t all = window_pages();
  int32_t window_group_count = 0;
  bool has_small_window = false;
  for (const auto& group : engine_->memory().layout().groups) {
    window_group_count += int32_t(group.window > 0);
    has_small_window = has_small_window || (group.window > 0 && group.window < 200);
  }
  EXPECT_EQ(all, window_group_count * 10);
  if (has_small_window) {
    EXPECT_LT(needed, all);
  }
}

TEST_P(GeneratorTest, RefusesPromptsThatCannotBe) {
  Generator generator(engine_.get());
  EXPECT_FALSE(bool(generator.read({})));
  const Tokens unknown = {Token(1), Token(384)};
  const auto refused = generator.read(unknown);
  ASSERT_FALSE(bool(refused));
  EXPECT_NE(refused.error().message.find("384"), std::string::npos);
  const Tokens negative = {Token(-1)};
  EXPECT_FALSE(bool(generator.read(negative)));
}

INSTANTIATE_TEST_SUITE_P(Models, GeneratorTest, ::testing::ValuesIn(models_of_every_kind()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace cairn::test::generator_test
