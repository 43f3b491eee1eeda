// Prompts that the store knows and memory does not, among jobs that share an engine: restored once,
// without a step that waits for the disk, counted before memory is taken, given back when
// cancelled.
#include "engine/stored_prefix.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/generator.h"
#include "engine/schedule/scheduler.h"
#include "tests/engine/sampled_job.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"
#include "tests/small_pages.h"

namespace cairn::test::stored_prefix_test {
namespace {

using Tokens = std::vector<Token>;

Tokens random_tokens(uint32_t seed, int32_t count) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (int32_t index = 0; index < count; ++index) tokens.push_back(Token(int32_t(random() % 384)));
  return tokens;
}

Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Reads of records other than manifests wait while it is closed.
class GateCalls : public store::FileCalls {
 public:
  ssize_t read_at(int file, void* bytes, size_t count, off_t offset) override {
    if (is_object(file)) {
      std::unique_lock lock(mutex_);
      has_reader_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return is_open_; });
      has_reader_ = false;
    }
    return store::FileCalls::read_at(file, bytes, count, offset);
  }
  void set_open(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }
  // Until a read is held up. REQUIRES: closed.
  void wait_for_reader() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return has_reader_; });
  }

 private:
  static bool is_object(int file) {
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    return std::filesystem::read_symlink(link).string().find("/objects/") != std::string::npos;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true, has_reader_ = false;
};

class StoredPrefixTest : public test::SmallPagesTest<const char*> {
 protected:
  std::unique_ptr<Engine> engine(bool has_store = true) {
    EngineOptions options = golden_options(KvType::f16);
    options.row_count_max = 48;
    options.log_step = 8;
    if (budget_bytes_ > 0) options.memory_budget = budget_bytes_;
    if (has_store) options.cache_dir = folder_.file("store");
    options.cache_calls = &gate_;
    return load_engine(golden_path(GetParam(), ".gguf"), options);
  }

  // An engine that goes has read it, and answered.
  void store(const Tokens& prompt) {
    const auto own = engine();
    Generator generator(own.get());
    ASSERT_TRUE(bool(generator.read(prompt)));
    ASSERT_TRUE(bool(generator.advance(Token(3))));
    ASSERT_TRUE(bool(generator.finish_turn()));
  }

  Sampled alone(const SampledRequest& request) {
    const auto own = engine(false);
    Sampled result;
    Scheduler scheduler(own.get());
    scheduler.submit(JobId{0}, std::make_unique<SampledJob>(own.get(), request, &result), {});
    run(scheduler);
    return result;
  }

  Sampled& submit(Engine& own, Scheduler& scheduler, const SampledRequest& request) {
    results_.push_back(std::make_unique<Sampled>());
    scheduler.submit(JobId{int64_t(results_.size())},
                     std::make_unique<SampledJob>(&own, request, results_.back().get()), {});
    return *results_.back();
  }

  static void run(Scheduler& scheduler) {
    for (int64_t step = 0; scheduler.has_work(); ++step) {
      ASSERT_LT(step, 100000) << "jobs that never end";
      // The last blocks may have come back between the two questions.
      const bool has_gone_on = scheduler.step();
      ASSERT_TRUE(has_gone_on || !scheduler.has_work());
    }
  }

  test::ScratchFolder folder_;
  GateCalls gate_;
  size_t budget_bytes_ = 0;
  std::vector<std::unique_ptr<Sampled>> results_;
};

// Many that arrive together and begin with what is stored load it once, and compute their own.
TEST_P(StoredPrefixTest, WhatManyBeginWithIsRestoredOnce) {
  const Tokens shared = random_tokens(1, 150);
  ASSERT_NO_FATAL_FAILURE(store(shared));
  const auto own = engine();
  Scheduler scheduler(own.get());
  std::vector<SampledRequest> requests;
  for (uint32_t index = 0; index < 6; ++index) {
    requests.push_back(
        {.prompt = shared + Tokens{Token(3)} + random_tokens(10 + index, 9), .token_count = 3});
    submit(*own, scheduler, requests.back());
  }
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(own->sequence_store()->stats().hits, 1u);
  EXPECT_GE(scheduler.stats().stored_prefixes, 1);
  EXPECT_EQ(scheduler.stats().prompt_rows, 6 * 9);
  EXPECT_TRUE(results_[0]->prompt.from_store);
  for (size_t index = 0; index < requests.size(); ++index) {
    const Sampled expected = alone(requests[index]);
    EXPECT_EQ(results_[index]->tokens, expected.tokens) << index;
    EXPECT_EQ(results_[index]->digest, expected.digest) << index;
  }
}

// While a prompt is restored from a disk that does not answer, an answer goes on in every step.
TEST_P(StoredPrefixTest, AnAnswerGoesOnWhileAPromptIsRestored) {
  const Tokens stored = random_tokens(1, 200);
  ASSERT_NO_FATAL_FAILURE(store(stored));
  const auto own = engine();
  Scheduler scheduler(own.get());
  const Sampled& answer =
      submit(*own, scheduler, {.prompt = random_tokens(2, 40), .token_count = 30});
  while (answer.tokens.empty()) ASSERT_TRUE(scheduler.step());
  gate_.set_open(false);
  const Sampled& restored = submit(*own, scheduler, {.prompt = stored, .token_count = 2});
  while (!answer.has_ended) {
    const size_t before = answer.tokens.size();
    ASSERT_TRUE(scheduler.step());
    ASSERT_EQ(answer.tokens.size(), before + 1);
  }
  EXPECT_TRUE(restored.tokens.empty());
  EXPECT_TRUE(scheduler.step()) << "it waits for the disk";
  gate_.set_open(true);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_TRUE(restored.prompt.from_store);
  EXPECT_EQ(restored.prompt.computed_tokens, 0);
  EXPECT_EQ(restored.digest, alone({.prompt = stored, .token_count = 2}).digest);
}

// Cancelled while a record is read: nobody sees the blocks, and all of them come back.
TEST_P(StoredPrefixTest, CancellingGivesEverythingBack) {
  const Tokens stored = random_tokens(1, 200);
  ASSERT_NO_FATAL_FAILURE(store(stored));
  const auto own = engine();
  Scheduler scheduler(own.get());
  gate_.set_open(false);
  const Sampled& restored = submit(*own, scheduler, {.prompt = stored});
  for (int step = 0; own->memory().usage().used_bytes() == 0; ++step) {
    ASSERT_LT(step, 10000);
    ASSERT_TRUE(scheduler.step());
  }
  gate_.wait_for_reader();
  ASSERT_TRUE(scheduler.cancel(JobId{1}, fail(ErrorCode::cancelled, "no more")));
  EXPECT_TRUE(restored.has_ended);
  EXPECT_EQ(own->cache().entry_count(), 0u);
  EXPECT_TRUE(scheduler.has_work()) << "the disk has the blocks";
  gate_.set_open(true);
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(own->memory().usage().used_bytes(), 0u);
}

// Where there is no room for it beside those who run, it waits for them, and is restored then.
class TightStoredPrefixTest : public StoredPrefixTest {};

TEST_P(TightStoredPrefixTest, ItsBytesAreCountedBeforeItBegins) {
  const Tokens stored = random_tokens(1, 200);
  ASSERT_NO_FATAL_FAILURE(store(stored));
  {
    const auto roomy = engine(false);
    const memory::Sequence empty = roomy->memory().new_sequence();
    const bool is_recurrent = roomy->memory().layout().recurrent_group >= 0;
    budget_bytes_ = roomy->memory().plan(empty, 230).new_bytes * (is_recurrent ? 4 : 3) / 2;
  }
  const SampledRequest first{.prompt = random_tokens(2, 150), .token_count = 20};
  const auto own = engine();
  ASSERT_NE(own, nullptr);
  Scheduler scheduler(own.get());
  const Sampled& running = submit(*own, scheduler, first);
  while (running.tokens.empty()) ASSERT_TRUE(scheduler.step());
  const Sampled& restored = submit(*own, scheduler, {.prompt = stored, .token_count = 2});
  while (!running.has_ended) {
    ASSERT_EQ(own->sequence_store()->stats().hits, 0u);
    ASSERT_TRUE(scheduler.step());
  }
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(scheduler.stats().preemptions, 0);
  EXPECT_EQ(own->sequence_store()->stats().hits, 1u);
  EXPECT_TRUE(restored.prompt.from_store);
  EXPECT_FALSE(restored.error);
}

// What is evicted, of jobs that nobody finished, is in the store afterwards. Which that is depends
// on how their prompts were cut into steps, and so on the machine.
TEST_P(StoredPrefixTest, WhatIsEvictedIsWritten) {
  {
    const auto roomy = engine(false);
    const memory::Sequence empty = roomy->memory().new_sequence();
    budget_bytes_ = roomy->memory().plan(empty, 200).new_bytes * 60;
  }
  std::vector<SampledRequest> requests;
  {
    const auto own = engine();
    ASSERT_NE(own, nullptr);
    Scheduler scheduler(own.get());
    while (own->sequence_store()->counts().demoted == 0) {
      ASSERT_LT(requests.size(), 1000u);
      const uint32_t seed = uint32_t(requests.size()) + 1;
      requests.push_back({.prompt = random_tokens(seed, 150), .finishes_turn = false});
      submit(*own, scheduler, requests.back());
      ASSERT_NO_FATAL_FAILURE(run(scheduler));
    }
  }
  const auto again = engine();
  Scheduler scheduler(again.get());
  for (const SampledRequest& request : requests) {
    const Sampled& restored = submit(*again, scheduler, request);
    ASSERT_NO_FATAL_FAILURE(run(scheduler));
    if (!restored.prompt.from_store) continue;
    EXPECT_EQ(restored.digest, alone(request).digest);
    return;
  }
  FAIL() << "nothing of it was restored";
}

INSTANTIATE_TEST_SUITE_P(Kinds, TightStoredPrefixTest,
                         ::testing::Values("llama", "llama4", "qwen3next"),
                         [](const auto& one) { return std::string(one.param); });

INSTANTIATE_TEST_SUITE_P(Kinds, StoredPrefixTest,
                         ::testing::Values("llama", "gemma3", "llama4", "granitehybrid", "mamba",
                                           "qwen3next"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace cairn::test::stored_prefix_test
