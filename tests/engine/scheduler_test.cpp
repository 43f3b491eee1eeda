// Who waits for whom, what is computed once, and whose memory others get; on models of every kind
// of memory where that matters. What schedules do not change: tests/engine/schedules_test.cpp.
#include "engine/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "engine/lane_batch.h"
#include "tests/engine/sampled_job.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"
#include "tests/small_pages.h"
#include "tests/store/hanging_disk.h"

namespace cairn::test::scheduler_test {
namespace {

using Tokens = std::vector<Token>;

Tokens random_tokens(std::mt19937& random, int32_t count) {
  Tokens tokens;
  for (int32_t index = 0; index < count; ++index) tokens.push_back(Token(int32_t(random() % 384)));
  return tokens;
}

Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

EngineOptions small_steps() {
  EngineOptions options = golden_options(KvType::f16);
  options.row_count_max = 48;
  return options;
}

// One of each kind of memory.
constexpr std::array kModels = {"llama",    "gemma3", "gemma4",        "gemma3n", "llama4",
                                "qwen3moe", "mamba",  "granitehybrid", "lfm2",    "qwen3next"};

class SchedulerTest : public test::SmallPagesTest<const char*> {
 protected:
  std::unique_ptr<Engine> engine(const EngineOptions& options = small_steps()) {
    auto made = load_engine(golden_path(GetParam(), ".gguf"), options);
    EXPECT_NE(made, nullptr);
    return made;
  }

  // What each request answers on an engine that has done nothing else.
  std::vector<Sampled> alone(const std::vector<SampledRequest>& requests) {
    std::vector<Sampled> results(requests.size());
    for (size_t index = 0; index < requests.size(); ++index) {
      results[index] = sampled_alone(*engine(golden_options(KvType::f16)), requests[index]);
    }
    return results;
  }
};

void run(Scheduler& scheduler, int64_t step_max = 100000) {
  for (int64_t step = 0; scheduler.has_work(); ++step) {
    ASSERT_LT(step, step_max) << "jobs that never end";
    ASSERT_TRUE(scheduler.step());
  }
}

// Sixteen that arrive together compute what they share once.
TEST_P(SchedulerTest, ASharedPrefixIsComputedOnce) {
  std::mt19937 random(1);
  const Tokens system = random_tokens(random, 300);
  std::vector<SampledRequest> requests;
  size_t own_tokens = 0;
  for (int index = 0; index < 16; ++index) {
    const Tokens own = random_tokens(random, 5 + index);
    own_tokens += own.size();
    requests.push_back({.prompt = system + own, .token_count = 2});
  }
  const auto own = engine();
  Scheduler scheduler(own.get());
  std::vector<Sampled> results(requests.size());
  for (size_t index = 0; index < requests.size(); ++index) {
    scheduler.submit(JobId{int64_t(index)},
                     std::make_unique<SampledJob>(own.get(), requests[index], &results[index]), {});
  }
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(scheduler.stats().prompt_rows, int64_t(system.size() + own_tokens));
  EXPECT_EQ(scheduler.stats().shared_waits, 15);
  const std::vector<Sampled> expected = alone(requests);
  for (size_t index = 0; index < requests.size(); ++index) {
    EXPECT_EQ(results[index].digest, expected[index].digest) << index;
  }
}

// Several answers of one prompt share all of it.
TEST_P(SchedulerTest, AnswersOfOnePromptComputeItOnce) {
  std::mt19937 random(2);
  const Tokens prompt = random_tokens(random, 200);
  const auto own = engine();
  Scheduler scheduler(own.get());
  std::vector<Sampled> results(5);
  for (size_t index = 0; index < results.size(); ++index) {
    SampledRequest request{
        .prompt = prompt, .token_count = 3, .sampling = {.temperature = 1, .seed = index}};
    scheduler.submit(JobId{int64_t(index)},
                     std::make_unique<SampledJob>(own.get(), request, &results[index]), {});
  }
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(scheduler.stats().prompt_rows, int64_t(prompt.size()));
  EXPECT_EQ(scheduler.stats().decode_rows, 5 * 2);
  EXPECT_NE(results[0].tokens, results[1].tokens);
}

// A step ends early where all of its jobs are about to be cancelled, and only there.
TEST_P(SchedulerTest, StepsThatNobodyWantsAreGivenUp) {
  std::mt19937 random(7);
  std::vector<SampledRequest> requests;
  for (const int32_t length : {90, 20}) {
    requests.push_back({.prompt = random_tokens(random, length), .token_count = 3});
  }
  const auto own = engine();
  Scheduler scheduler(own.get());
  std::vector<Sampled> results(2);
  int64_t asked = 0;
  bool is_unwanted = false;
  scheduler.ask_meanwhile([&](JobId id) {
    ++asked;
    return is_unwanted && id == JobId{0};
  });
  const auto submit = [&](size_t index) {
    scheduler.submit(JobId{int64_t(index)},
                     std::make_unique<SampledJob>(own.get(), requests[index], &results[index]), {});
  };
  submit(0);
  ASSERT_TRUE(scheduler.step());
  EXPECT_EQ(scheduler.stats().prompt_rows, 48);
  EXPECT_GT(asked, 10);
  is_unwanted = true;
  asked = 0;
  (void)scheduler.step();
  EXPECT_EQ(scheduler.stats().prompt_rows, 48);
  EXPECT_EQ(asked, 1);
  submit(1);
  ASSERT_TRUE(scheduler.step());
  EXPECT_EQ(scheduler.stats().prompt_rows, 96);
  ASSERT_TRUE(scheduler.cancel(JobId{0}, fail(ErrorCode::cancelled, "left")));
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(results[1].digest, alone(requests)[1].digest);
}

// Jobs of a small model, to see who goes first.
class Turns : public ::testing::Test {
 protected:
  Turns() : engine_(load_engine(golden_path("llama", ".gguf"), small_steps())) {}

  Tokens prompt(uint32_t seed, int32_t count = 20) {
    std::mt19937 random(seed);
    return random_tokens(random, count);
  }

  // The results' places do not change.
  Sampled& submit(Scheduler& scheduler, SampledRequest request, JobTerms terms = {}) {
    results_.push_back(std::make_unique<Sampled>());
    auto job =
        std::make_unique<SampledJob>(engine_.get(), std::move(request), results_.back().get());
    last_ = job.get();
    scheduler.submit(JobId{int64_t(results_.size())}, std::move(job), std::move(terms));
    return *results_.back();
  }

  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Sampled>> results_;
  SampledJob* last_ = nullptr;
};

TEST_F(Turns, AnAnswerGoesOnInEveryStepWhileOthersRead) {
  Scheduler scheduler(engine_.get(), {.step_seconds = 1e-9});
  Sampled& answer = submit(scheduler, {.prompt = prompt(1), .token_count = 40});
  while (answer.tokens.empty()) ASSERT_TRUE(scheduler.step());
  for (uint32_t other = 2; other < 5; ++other) {
    submit(scheduler, {.prompt = prompt(other, 150)});
  }
  int32_t steps = 0;
  while (!answer.has_ended) {
    const size_t before = answer.tokens.size();
    ASSERT_TRUE(scheduler.step());
    ASSERT_EQ(answer.tokens.size(), before + 1);
    ++steps;
  }
  EXPECT_EQ(steps, 39);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  // Steps that have no time to spare read the least that is worth it.
  EXPECT_GE(scheduler.stats().steps, 3 * 150 / 16);
}

// More answers than a step has rows: all go on alike, whoever came first, and a prompt is read.
TEST_F(Turns, AnswersTakeTurnsWhereAStepHasFewRows) {
  for (const int32_t row_count : {1, 2, 5, 17}) {
    SCOPED_TRACE(row_count);
    EngineOptions options = small_steps();
    options.row_count_max = row_count;
    engine_ = load_engine(golden_path("llama", ".gguf"), options);
    Scheduler scheduler(engine_.get(), {.step_seconds = 1e-9, .quiet_step_seconds = 1e-9});
    std::vector<const Sampled*> answers;
    const int32_t count = row_count + 3;
    for (int32_t index = 0; index < count; ++index) {
      answers.push_back(
          &submit(scheduler, {.prompt = prompt(uint32_t(index), 3), .token_count = 90}));
    }
    const auto have_begun = [&] {
      return std::ranges::none_of(answers,
                                  [](const Sampled* each) { return each->tokens.empty(); });
    };
    for (int32_t steps = 0; !have_begun(); ++steps) {
      ASSERT_LT(steps, 40 * count) << "somebody's prompt is not read";
      ASSERT_TRUE(scheduler.step());
    }
    std::vector<size_t> before;
    for (const Sampled* each : answers) before.push_back(each->tokens.size());
    // So many steps give each of them ten rows.
    for (int32_t step = 0; step < (10 * count + row_count - 1) / row_count; ++step) {
      ASSERT_TRUE(scheduler.step());
    }
    for (size_t index = 0; index < answers.size(); ++index) {
      EXPECT_NEAR(double(answers[index]->tokens.size() - before[index]), 10, 1) << index;
    }
    const Sampled& late = submit(scheduler, {.prompt = prompt(99, 12), .token_count = 2});
    for (int32_t steps = 0; !late.has_ended; ++steps) {
      ASSERT_LT(steps, 60) << "the answers that are being made keep a prompt from being read";
      ASSERT_TRUE(scheduler.step());
    }
    EXPECT_FALSE(answers.front()->has_ended);
    ASSERT_NO_FATAL_FAILURE(run(scheduler));
  }
}

// Those of a higher priority do not wait for a turn.
TEST_F(Turns, UrgentAnswersHaveARowInEveryStep) {
  EngineOptions options = small_steps();
  options.row_count_max = 2;
  engine_ = load_engine(golden_path("llama", ".gguf"), options);
  Scheduler scheduler(engine_.get());
  std::vector<const Sampled*> others;
  for (uint32_t index = 0; index < 4; ++index) {
    others.push_back(&submit(scheduler, {.prompt = prompt(index, 3), .token_count = 60}));
  }
  const Sampled& urgent =
      submit(scheduler, {.prompt = prompt(9, 3), .token_count = 40}, {.priority = 1});
  while (urgent.tokens.empty()) ASSERT_TRUE(scheduler.step());
  while (!urgent.has_ended) {
    const size_t before = urgent.tokens.size();
    ASSERT_TRUE(scheduler.step());
    ASSERT_EQ(urgent.tokens.size(), before + 1);
  }
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  for (const Sampled* each : others) EXPECT_EQ(each->tokens.size(), 60u);
}

// Nor for prompts of others, whatever else is being answered.
TEST_F(Turns, UrgentAnswersGiveNoRowToOtherPrompts) {
  EngineOptions options = small_steps();
  options.row_count_max = 2;
  engine_ = load_engine(golden_path("llama", ".gguf"), options);
  Scheduler scheduler(engine_.get());
  std::vector<const Sampled*> urgent;
  const Sampled& other = submit(scheduler, {.prompt = prompt(1, 3), .token_count = 60});
  while (other.tokens.empty()) ASSERT_TRUE(scheduler.step());
  for (uint32_t index = 2; index < 4; ++index) {
    urgent.push_back(
        &submit(scheduler, {.prompt = prompt(index, 3), .token_count = 40}, {.priority = 1}));
  }
  while (urgent[0]->tokens.empty() || urgent[1]->tokens.empty()) ASSERT_TRUE(scheduler.step());
  const Sampled& late = submit(scheduler, {.prompt = prompt(9, 30), .token_count = 2});
  while (!urgent[0]->has_ended && !urgent[1]->has_ended) {
    const size_t before = urgent[0]->tokens.size() + urgent[1]->tokens.size();
    ASSERT_TRUE(scheduler.step());
    ASSERT_EQ(urgent[0]->tokens.size() + urgent[1]->tokens.size(), before + 2);
  }
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(late.tokens.size(), 2u);
}

TEST_F(Turns, ClientsTakeTurnsWhateverTheyAskFor) {
  Scheduler scheduler(engine_.get(), {.running_max = 1});
  std::vector<const Sampled*> greedy;
  for (uint32_t index = 0; index < 6; ++index) {
    greedy.push_back(&submit(scheduler, {.prompt = prompt(index)}, {.client = "greedy"}));
  }
  while (!greedy[1]->has_ended) ASSERT_TRUE(scheduler.step());
  const Sampled& modest = submit(scheduler, {.prompt = prompt(9)}, {.client = "modest"});
  while (!modest.has_ended) ASSERT_TRUE(scheduler.step());
  const auto ended = std::count_if(greedy.begin(), greedy.end(),
                                   [](const Sampled* each) { return each->has_ended; });
  EXPECT_LE(ended, 3) << "who came later waits for one job of the other client, not for all";
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
}

TEST_F(Turns, HigherPrioritiesGoFirst) {
  Scheduler scheduler(engine_.get(), {.running_max = 1});
  const Sampled& first = submit(scheduler, {.prompt = prompt(1), .token_count = 5});
  ASSERT_TRUE(scheduler.step());
  const Sampled& low = submit(scheduler, {.prompt = prompt(2)}, {.priority = -1});
  const Sampled& high = submit(scheduler, {.prompt = prompt(3)}, {.priority = 1});
  while (!high.has_ended) {
    ASSERT_FALSE(low.has_ended);
    ASSERT_TRUE(scheduler.step());
  }
  EXPECT_TRUE(first.has_ended);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_TRUE(low.has_ended);
}

// Who waits for a prefix of a job of low priority is not held up by those in between.
TEST_F(Turns, PrioritiesAreLentToThoseWhoComputeAPrefix) {
  Scheduler scheduler(engine_.get(), {.step_seconds = 1e-9, .quiet_step_seconds = 1e-9});
  const Tokens shared = prompt(1, 200);
  const Sampled& low = submit(scheduler, {.prompt = shared}, {.priority = -1});
  for (int count = 0; count < 2; ++count) ASSERT_TRUE(scheduler.step());
  const Sampled& between = submit(scheduler, {.prompt = prompt(2, 400)});
  const Sampled& high = submit(scheduler, {.prompt = shared + prompt(3)}, {.priority = 1});
  while (!high.has_ended) ASSERT_TRUE(scheduler.step());
  EXPECT_FALSE(between.has_ended);
  EXPECT_TRUE(low.has_ended);
  EXPECT_EQ(scheduler.stats().shared_waits, 1);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
}

TEST_F(Turns, IdleJobsTakeOnlyEmptySteps) {
  Scheduler scheduler(engine_.get());
  const Sampled& idle = submit(scheduler, {.prompt = prompt(1, 250)}, {.is_idle = true});
  ASSERT_TRUE(scheduler.step());
  const int64_t idle_rows = scheduler.stats().idle_rows;
  EXPECT_GT(idle_rows, 0);
  const Sampled& answer = submit(scheduler, {.prompt = prompt(2), .token_count = 10});
  while (!answer.has_ended) {
    ASSERT_TRUE(scheduler.step());
    EXPECT_EQ(scheduler.stats().idle_rows, idle_rows);
  }
  EXPECT_FALSE(idle.has_ended);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_TRUE(idle.has_ended);
  EXPECT_EQ(scheduler.stats().idle_rows, 250);
  EXPECT_EQ(scheduler.stats().prompt_rows, 20);
}

TEST_F(Turns, DeadlinesEndTheirJobAlone) {
  Scheduler scheduler(engine_.get());
  const Sampled& late = submit(scheduler, {.prompt = prompt(1), .token_count = 1000},
                               {.deadline = JobTerms::Clock::now()});
  const Sampled& other = submit(scheduler, {.prompt = prompt(2)});
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  ASSERT_TRUE(late.error);
  EXPECT_EQ(late.error->code, ErrorCode::cancelled);
  EXPECT_TRUE(late.tokens.empty());
  EXPECT_FALSE(other.error);
}

TEST_F(Turns, BlockedJobsWaitAndHoldUpNobody) {
  Scheduler scheduler(engine_.get());
  const Sampled& blocked = submit(scheduler, {.prompt = prompt(1), .token_count = 5});
  SampledJob* const job = last_;
  while (blocked.tokens.empty()) ASSERT_TRUE(scheduler.step());
  job->block(true);
  const size_t count = blocked.tokens.size();
  const Sampled& other = submit(scheduler, {.prompt = prompt(2), .token_count = 5});
  while (!other.has_ended) ASSERT_TRUE(scheduler.step());
  EXPECT_FALSE(scheduler.step()) << "there is nothing to do";
  EXPECT_EQ(blocked.tokens.size(), count);
  job->block(false);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(blocked.tokens.size(), 5u);
}

// Where memory is short, who is not read gives up its own, and goes on when it is read again.
TEST_F(Turns, BlockedJobsKeepNoMemoryFromOthers) {
  EngineOptions options = small_steps();
  const memory::Sequence empty = engine_->memory().new_sequence();
  options.memory_budget = engine_->memory().plan(empty, 200).new_bytes * 3 / 2;
  engine_ = load_engine(golden_path("llama", ".gguf"), options);
  Scheduler scheduler(engine_.get());
  const SampledRequest request{.prompt = prompt(1, 150), .token_count = 20};
  const Sampled& blocked = submit(scheduler, request);
  SampledJob* const job = last_;
  while (blocked.tokens.size() < 5) ASSERT_TRUE(scheduler.step());
  job->block(true);
  const Sampled& other = submit(scheduler, {.prompt = prompt(2, 150), .token_count = 20});
  for (int step = 0; !other.has_ended; ++step) {
    ASSERT_LT(step, 1000);
    ASSERT_TRUE(scheduler.step());
  }
  EXPECT_FALSE(other.error);
  EXPECT_EQ(scheduler.stats().preemptions, 1);
  job->block(false);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  Sampled& alone = submit(scheduler, request);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(blocked.tokens, alone.tokens);
  EXPECT_EQ(blocked.digest, alone.digest);
}

// Memory that somebody else gives back ends a stall: no job has to end for it.
TEST_F(Turns, AStalledAnswerGoesOnWhenThereIsRoom) {
  EngineOptions options = small_steps();
  const memory::Sequence empty = engine_->memory().new_sequence();
  // Both answers grow beyond two pages of 32 tokens. There is room for one page more, beside hidden
  // rows, which are less than a page.
  options.memory_budget = 0;
  for (const int32_t tokens : {150, 64, 64, 32, 32}) {
    options.memory_budget += engine_->memory().plan(empty, tokens).new_bytes;
  }
  engine_ = load_engine(golden_path("llama", ".gguf"), options);
  auto held = std::make_unique<Lane>(engine_.get());
  LaneBatch batch(engine_.get());
  ASSERT_TRUE(held->start(prompt(1, 150)));
  while (held->wants_rows()) ASSERT_TRUE(batch.step(*held));

  Scheduler scheduler(engine_.get());
  const Sampled& senior = submit(scheduler, {.prompt = prompt(2, 40), .token_count = 90});
  const Sampled& junior = submit(scheduler, {.prompt = prompt(3, 40), .token_count = 90});
  const auto has_stalled = [&] {
    const size_t before = junior.tokens.size();
    EXPECT_TRUE(scheduler.step());
    return before > 0 && junior.tokens.size() == before;
  };
  while (!has_stalled()) ASSERT_FALSE(senior.has_ended) << "memory was never short";
  ASSERT_TRUE(has_stalled());
  ASSERT_EQ(scheduler.stats().preemptions, 0);
  held.reset();
  EXPECT_FALSE(has_stalled());
  EXPECT_FALSE(senior.has_ended);
  EXPECT_EQ(scheduler.stats().preemptions, 0);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(junior.tokens.size(), 90u);
}

// With a store on a disk that may hang, and memory for 150 tokens and 96 more.
class HangingDiskTurns : public Turns {
 protected:
  HangingDiskTurns() {
    EngineOptions options = small_steps();
    const memory::Sequence empty = engine_->memory().new_sequence();
    options.memory_budget =
        engine_->memory().plan(empty, 150).new_bytes + engine_->memory().plan(empty, 96).new_bytes;
    options.cache_dir = folder_.file("store");
    options.cache_calls = &disk_;
    engine_ = load_engine(golden_path("llama", ".gguf"), options);
  }
  ~HangingDiskTurns() override {
    disk_.let_go();
    engine_.reset();
  }

  test::ScratchFolder folder_;
  test::HangingDisk disk_;
};

// Memory that is being written comes back: an answer that needs it waits, and does not end.
TEST_F(HangingDiskTurns, AnAnswerWaitsForMemoryThatIsBeingWritten) {
  SequenceStore& store = *engine_->sequence_store();
  while (!store.is_ready()) std::this_thread::yield();
  Scheduler scheduler(engine_.get(), {.running_max = 1});
  disk_.hang();
  const Sampled& written = submit(scheduler, {.prompt = prompt(1, 130), .token_count = 10});
  while (!written.has_ended) ASSERT_TRUE(scheduler.step());
  disk_.wait_until_hanging();
  engine_->cache().clear();
  ASSERT_GT(engine_->memory().usage().used_bytes(), 0u);

  const SampledRequest request{.prompt = prompt(2, 40), .token_count = 120};
  const Sampled& answer = submit(scheduler, request);
  const Sampled& other = submit(scheduler, {.prompt = prompt(3, 40), .token_count = 5});
  size_t before = 0;
  const auto has_stalled = [&] {
    before = answer.tokens.size();
    EXPECT_TRUE(scheduler.step());
    return before > 0 && answer.tokens.size() == before;
  };
  while (!has_stalled()) ASSERT_FALSE(answer.has_ended) << "memory was never short";
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(has_stalled());
  ASSERT_FALSE(answer.has_ended);
  disk_.let_go();
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  ASSERT_FALSE(answer.error) << answer.error->message;
  EXPECT_FALSE(other.error);
  const auto fresh = load_engine(golden_path("llama", ".gguf"), golden_options(KvType::f16));
  EXPECT_EQ(answer.digest, sampled_alone(*fresh, request).digest);
}

// One that is alone too: meanwhile it can be cancelled, and others may come.
TEST_F(HangingDiskTurns, AnAnswerAloneDoesNotWaitWithinAStep) {
  SequenceStore& store = *engine_->sequence_store();
  while (!store.is_ready()) std::this_thread::yield();
  Scheduler scheduler(engine_.get());
  disk_.hang();
  const Sampled& written = submit(scheduler, {.prompt = prompt(1, 130), .token_count = 10});
  while (!written.has_ended) ASSERT_TRUE(scheduler.step());
  disk_.wait_until_hanging();
  engine_->cache().clear();
  // A step that waited for the disk would end by this alone.
  std::promise<void> has_ended;
  std::atomic<bool> was_let_go = false;
  std::thread rescue([&, ended = has_ended.get_future()] {
    if (ended.wait_for(std::chrono::seconds(30)) == std::future_status::ready) return;
    was_let_go = true;
    disk_.let_go();
  });
  const SampledRequest request{.prompt = prompt(2, 40), .token_count = 120};
  const Sampled& cancelled = submit(scheduler, request);
  const auto stall = [&](const Sampled& answer) {
    size_t before = 0;
    for (int stalled_steps = 0; stalled_steps < 5 && !answer.has_ended;) {
      before = answer.tokens.size();
      EXPECT_TRUE(scheduler.step());
      stalled_steps = before > 0 && answer.tokens.size() == before ? stalled_steps + 1 : 0;
    }
  };
  stall(cancelled);
  EXPECT_FALSE(cancelled.has_ended) << "memory was never short";
  EXPECT_TRUE(
      scheduler.cancel(JobId{int64_t(results_.size())}, fail(ErrorCode::cancelled, "not wanted")));
  EXPECT_TRUE(cancelled.has_ended);
  engine_->cache().clear();
  const Sampled& answer = submit(scheduler, request);
  stall(answer);
  has_ended.set_value();
  rescue.join();
  EXPECT_FALSE(was_let_go) << "a step waited for the disk";
  // What is written before the answer is tried again is not missed.
  disk_.let_go();
  while (store.stats().entries == 0) std::this_thread::yield();
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  ASSERT_FALSE(answer.error) << answer.error->message;
  EXPECT_EQ(answer.tokens.size(), 120u);
}

TEST_F(Turns, TheQueueIsBounded) {
  Scheduler scheduler(engine_.get(), {.running_max = 1, .waiting_max = 3});
  for (uint32_t index = 0; index < 3; ++index) submit(scheduler, {.prompt = prompt(index)});
  const Sampled& refused = submit(scheduler, {.prompt = prompt(9)});
  ASSERT_TRUE(refused.has_ended && refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::no_room);
  EXPECT_EQ(refused.error->message, "queue: expected at most 3 waiting requests, found 3");
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
}

// With memory for so many tokens, of which two tenants have a share each.
class TenantTurns : public Turns {
 protected:
  static constexpr int32_t kTokens = 416;
  static inline const TenantShares kShares{.tenants = {1, 2}};

  TenantTurns() {
    EngineOptions options = small_steps();
    const memory::Sequence empty = engine_->memory().new_sequence();
    options.memory_budget = engine_->memory().plan(empty, kTokens).new_bytes;
    engine_ = load_engine(golden_path("llama", ".gguf"), options);
  }

  Sampled& submit_for(Scheduler& scheduler, uint64_t tenant, SampledRequest request) {
    request.tenant = tenant;
    return submit(scheduler, std::move(request), {.client = tenant == 1 ? "anna" : "bert"});
  }
};

// What a tenant keeps stays while another floods the memory, one by one and many at once; and goes
// when one that is alone needs more than what is left.
TEST_F(TenantTurns, WhatIsWithinAShareStays) {
  const SampledRequest kept{.prompt = prompt(1, 90), .token_count = 3};
  for (const bool has_shares : {false, true}) {
    engine_->cache().clear();
    Scheduler scheduler(engine_.get());
    scheduler.set_tenants(has_shares ? kShares : TenantShares{});
    const Sampled& first = submit_for(scheduler, 1, kept);
    ASSERT_NO_FATAL_FAILURE(run(scheduler));
    std::vector<const Sampled*> flood;
    for (uint32_t index = 10; index < 20; ++index) {
      flood.push_back(&submit_for(scheduler, 2, {.prompt = prompt(index, 120), .token_count = 40}));
      if (index < 14) {
        ASSERT_NO_FATAL_FAILURE(run(scheduler));
      }
    }
    ASSERT_NO_FATAL_FAILURE(run(scheduler));
    for (const Sampled* const each : flood) EXPECT_FALSE(each->error);
    const Sampled& again = submit_for(scheduler, 1, kept);
    ASSERT_NO_FATAL_FAILURE(run(scheduler));
    EXPECT_EQ(again.prompt.computed_tokens == 0, has_shares);
    EXPECT_EQ(again.digest, first.digest);
    const SampledRequest large{.prompt = prompt(30, 380), .token_count = 5};
    const Sampled& alone = submit_for(scheduler, 2, large);
    ASSERT_NO_FATAL_FAILURE(run(scheduler));
    EXPECT_FALSE(alone.error);
    const auto fresh = load_engine(golden_path("llama", ".gguf"), golden_options(KvType::f16));
    EXPECT_EQ(alone.digest, sampled_alone(*fresh, large).digest);
  }
}

// Older answers of a tenant grow beyond its share: they take the room from each other, and
// another's answer gets a token in at least 80 % of the steps.
TEST_F(TenantTurns, OneThatGrowsStopsItsOwnAnswers) {
  for (const bool has_shares : {false, true}) {
    engine_->cache().clear();
    Scheduler scheduler(engine_.get(), {.step_seconds = 1e9, .quiet_step_seconds = 1e9});
    scheduler.set_tenants(has_shares ? kShares : TenantShares{});
    for (uint32_t index = 10; index < 15; ++index) {
      submit_for(scheduler, 2, {.prompt = prompt(index, 40), .token_count = 120});
    }
    while (scheduler.stats().running < 5) ASSERT_TRUE(scheduler.step());
    const Sampled& answer = submit_for(scheduler, 1, {.prompt = prompt(1, 60), .token_count = 100});
    const Lane& lane = *last_->lane();
    int32_t gaps = 0;
    bool is_stopped = false;
    while (!answer.has_ended) {
      const size_t before = answer.tokens.size();
      ASSERT_TRUE(scheduler.step());
      if (answer.has_ended) break;
      gaps += int32_t(before > 0 && answer.tokens.size() == before);
      is_stopped = is_stopped || lane.is_preempted();
    }
    EXPECT_FALSE(answer.error);
    EXPECT_EQ(is_stopped, !has_shares);
    if (has_shares) {
      EXPECT_LE(gaps, 100 / 4);
    }
    ASSERT_NO_FATAL_FAILURE(run(scheduler));
    EXPECT_GT(scheduler.stats().preemptions, 0);
  }
}

// Unique prompts of another one without end: a tenant's two turns take a tenth more steps at most
// than alone, and compute no token that they do not compute alone.
TEST_F(TenantTurns, AFloodCostsOthersATenthOfTheirStepsAtMost) {
  int32_t steps[2] = {}, computed[2] = {};
  for (const bool is_flooded : {false, true}) {
    engine_->cache().clear();
    Scheduler scheduler(engine_.get(), {.step_seconds = 1e9, .quiet_step_seconds = 1e9});
    scheduler.set_tenants(kShares);
    uint32_t next = 100;
    const auto flood = [&] {
      while (is_flooded && scheduler.stats().waiting < 4) {
        submit_for(scheduler, 2, {.prompt = prompt(next++, 60), .token_count = 30});
      }
    };
    for (int turn = 0; turn < 2; ++turn) {
      flood();
      const Sampled& answer =
          submit_for(scheduler, 1, {.prompt = prompt(1, 60), .token_count = 100});
      for (; !answer.has_ended; ++steps[is_flooded]) {
        flood();
        ASSERT_TRUE(scheduler.step());
      }
      EXPECT_FALSE(answer.error);
      EXPECT_EQ(answer.tokens.size(), 100u);
      computed[is_flooded] += answer.prompt.computed_tokens;
    }
    EXPECT_EQ(is_flooded, next > 110);
  }
  EXPECT_LE(steps[true] * 10, steps[false] * 11) << steps[true] << " of " << steps[false];
  EXPECT_EQ(computed[true], computed[false]);
}

// Who waits until its own answers leave room holds up nobody else.
TEST_F(TenantTurns, AFloodWaitsForItself) {
  Scheduler scheduler(engine_.get());
  scheduler.set_tenants(kShares);
  submit_for(scheduler, 1, {.prompt = prompt(1, 150)});
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  std::vector<const Sampled*> flood;
  for (uint32_t index = 10; index < 16; ++index) {
    flood.push_back(&submit_for(scheduler, 2, {.prompt = prompt(index, 160), .token_count = 60}));
  }
  ASSERT_TRUE(scheduler.step());
  EXPECT_EQ(scheduler.stats().running, 1) << "a second one would take what is another's";
  const Sampled& next = submit_for(scheduler, 1, {.prompt = prompt(1, 160), .token_count = 10});
  while (!next.has_ended) ASSERT_TRUE(scheduler.step());
  EXPECT_FALSE(flood.front()->has_ended);
  EXPECT_LE(next.prompt.computed_tokens, 10);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  for (const Sampled* const each : flood) EXPECT_FALSE(each->error);
}

// One tenant asks for all that it may: 63 others get every step from the one on in which they ask.
TEST_F(Turns, OneTenantAtFullLoadLeavesOthersTheirPart) {
  EngineOptions options = small_steps();
  options.row_count_max = 128;
  engine_ = load_engine(golden_path("llama", ".gguf"), options);
  Scheduler scheduler(engine_.get(), {.step_seconds = 1e9, .quiet_step_seconds = 1e9});
  TenantShares shares;
  for (uint64_t tenant = 1; tenant <= 64; ++tenant) shares.tenants.push_back(tenant);
  scheduler.set_tenants(shares);
  int32_t accepted = 0;
  const auto flood = [&] {
    const Sampled& one =
        submit(scheduler, {.prompt = prompt(7), .token_count = 200, .tenant = 64}, {.client = "f"});
    accepted += int32_t(!one.has_ended);
    return !one.has_ended;
  };
  for (int step = 0; step < 20; ++step) {
    while (flood()) {
    }
    ASSERT_TRUE(scheduler.step());
  }
  EXPECT_EQ(scheduler.stats().running, 32);
  constexpr size_t kAnswerTokens = 20;
  for (uint64_t round = 0; round < 2; ++round) {
    std::vector<const Sampled*> others;
    for (uint64_t tenant = 1; tenant <= 32; ++tenant) {
      others.push_back(&submit(
          scheduler,
          {.prompt = prompt(uint32_t(tenant)), .token_count = kAnswerTokens, .tenant = tenant},
          {.client = std::to_string(tenant)}));
    }
    int32_t steps = 0;
    const auto has_ended = [](const Sampled* each) { return each->has_ended; };
    for (; !std::ranges::all_of(others, has_ended); ++steps) {
      while (flood()) {
      }
      ASSERT_TRUE(scheduler.step());
    }
    for (const Sampled* const each : others) EXPECT_EQ(each->tokens.size(), kAnswerTokens);
    // A token in at least 80 % of the steps behind those that read 32 prompts.
    const int32_t read_steps = 32 * 20 / (128 - 64) + 1;
    EXPECT_LE(steps, int32_t(kAnswerTokens) * 10 / 8 + read_steps);
  }
  EXPECT_GT(accepted, 32);
}

TEST_F(Turns, TheQueueHasAPartForEachTenant) {
  Scheduler scheduler(engine_.get(), {.running_max = 1, .waiting_max = 10});
  scheduler.set_tenants({.tenants = {1, 2}});
  for (uint32_t index = 0; index < 5; ++index) {
    EXPECT_FALSE(submit(scheduler, {.prompt = prompt(index)}, {.client = "bert"}).has_ended);
  }
  const Sampled& refused = submit(scheduler, {.prompt = prompt(9)}, {.client = "bert"});
  ASSERT_TRUE(refused.has_ended && refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::no_room);
  EXPECT_EQ(refused.error->message, "queue: expected at most 5 waiting requests, found 5");
  const Sampled& other = submit(scheduler, {.prompt = prompt(8)}, {.client = "anna"});
  EXPECT_FALSE(other.has_ended);
  scheduler.set_tenants({});
  EXPECT_FALSE(submit(scheduler, {.prompt = prompt(7)}, {.client = "bert"}).has_ended);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_FALSE(other.error);
}

// An error of one request is its own.
TEST_F(Turns, ErrorsEndTheirJobAlone) {
  Scheduler scheduler(engine_.get());
  const Sampled& unknown = submit(scheduler, {.prompt = {Token(1 << 20)}});
  const Sampled& empty = submit(scheduler, {.prompt = {}});
  const int32_t context = engine_->options().context_tokens;
  const Sampled& endless = submit(scheduler, {.prompt = prompt(1, 30), .token_count = context + 1});
  const Sampled& other = submit(scheduler, {.prompt = prompt(2), .token_count = 5});
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(unknown.error->code, ErrorCode::invalid_argument);
  EXPECT_EQ(empty.error->code, ErrorCode::invalid_argument);
  EXPECT_EQ(endless.error->code, ErrorCode::context_full);
  EXPECT_FALSE(other.error);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SchedulerTest, ::testing::ValuesIn(kModels),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace cairn::test::scheduler_test
