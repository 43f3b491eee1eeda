// Random calls on random handles, open, closed and of other kinds, on several threads at once: each
// gets an answer that the header knows, nothing hangs, and afterwards the engine works as before.
#include <cairn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <random>
#include <thread>

#include "tests/capi/fake_backend.h"
#include "tests/capi/opened.h"

namespace cairn::random_calls_test {
namespace {

using test::sized;

// What any thread has ever been given.
class Handles {
 public:
  void add(void* handle) {
    const std::lock_guard lock(mutex_);
    all_.push_back(handle);
  }
  template <class Handle>
  Handle* any(std::mt19937& random) {
    const std::lock_guard lock(mutex_);
    const size_t back = random() % std::min(all_.size(), kLately);
    return static_cast<Handle*>(all_[all_.size() - 1 - back]);
  }
  std::vector<void*> all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  static constexpr size_t kLately = 20;

  std::mutex mutex_;
  std::vector<void*> all_{nullptr};
};

struct Pools {
  Handles models, engines, conversations, snapshots, rows;
};

class Caller {
 public:
  Caller(Pools* pools, std::vector<cairn_token> prompt, uint32_t seed)
      : pools_(*pools), prompt_(std::move(prompt)), random_(seed) {}

  // Whether the answer is one of the header's, and no defect.
  bool call() {
    error_.message[0] = '\0';
    const cairn_status status = random_() % 4 == 0 ? change_handles() : use_conversation();
    done_count_ += int(status == CAIRN_OK || status == CAIRN_DONE);
    const bool is_known = status >= CAIRN_E_MISMATCH && status <= CAIRN_CANCELLED;
    if (!is_known) wrong_ = error_.message;
    return is_known;
  }

  int done_count() const { return done_count_; }
  const std::string& wrong() const { return wrong_; }  // What was said last.

 private:
  // Mostly one of its kind.
  cairn_conversation* conversation() {
    if (random_() % 32 == 0) return pools_.snapshots.any<cairn_conversation>(random_);
    return pools_.conversations.any<cairn_conversation>(random_);
  }

  template <class Handle>
  cairn_status keep(cairn_status status, Handle*& made, Handles& pool) {
    if (made != nullptr) pool.add(made);
    return (status == CAIRN_OK) == (made != nullptr) ? status : CAIRN_E_INTERNAL;
  }

  cairn_status change_handles() {
    cairn_conversation* c = nullptr;
    cairn_snapshot* snapshot = nullptr;
    cairn_logits* row = nullptr;
    auto* const engine = pools_.engines.any<cairn_engine>(random_);
    switch (random_() % 9) {
      case 0:
      case 1:
        return keep(cairn_conversation_open(engine, &c, &error_), c, pools_.conversations);
      case 2:
        return keep(cairn_snapshot_take(conversation(), &snapshot, &error_), snapshot,
                    pools_.snapshots);
      case 3:
        return keep(
            cairn_fork(conversation(), pools_.snapshots.any<cairn_snapshot>(random_), &c, &error_),
            c, pools_.conversations);
      case 4:
        return keep(cairn_logits_acquire(conversation(), &row, &error_), row, pools_.rows);
      case 5:
        cairn_conversation_close(conversation());
        return CAIRN_OK;
      case 6:
        cairn_snapshot_release(pools_.snapshots.any<cairn_snapshot>(random_));
        return CAIRN_OK;
      case 7:
        cairn_logits_release(pools_.rows.any<cairn_logits>(random_));
        return CAIRN_OK;
      default:
        cairn_cancel(conversation());
        return CAIRN_OK;
    }
  }

  cairn_status use_conversation() {
    cairn_event event = sized<cairn_event>();
    cairn_plan plan = sized<cairn_plan>();
    cairn_memory memory = sized<cairn_memory>();
    cairn_conversation* const c = conversation();
    auto* const engine = pools_.engines.any<cairn_engine>(random_);
    cairn_token token = 0;
    size_t bytes = 0;
    switch (random_() % 15) {
      case 0:
        return cairn_sync(c, prompt_.data(), random_() % (prompt_.size() + 1), &plan, &error_);
      case 1:
        return cairn_prefill(c, prompt_.data(), random_() % 4, &plan, &error_);
      case 2:
        return cairn_rewind(c, uint32_t(random_() % 20), &plan, &error_);
      case 3:
        return cairn_plan_rewind(c, uint32_t(random_() % 20), &plan, &error_);
      case 4:
        return cairn_rewind_to(c, pools_.snapshots.any<cairn_snapshot>(random_), &plan, &error_);
      case 5:
        return cairn_start(c, &error_);
      case 6:
        return cairn_poll(c, &event, &error_);
      case 7:
        return cairn_sample(c, nullptr, 0, &token, &error_);
      case 8:
        return cairn_engine_get_memory(engine, &memory, &error_);
      case 9:
        return set_sampling(c);
      case 10:
        return cairn_receipt(c, receipt_.data(), receipt_.size(), &bytes, &error_);
      case 11:
        return cairn_set_logits(c, row_.data(), row_.size() - random_() % 2, &error_);
      case 12:
        return cairn_score(engine, prompt_.data(), random_() % (prompt_.size() + 1), row_.data(),
                           nullptr, row_.size(), &error_);
      default:
        return cairn_next(c, &event, &error_);
    }
  }

  cairn_status set_sampling(cairn_conversation* c) {
    cairn_sampling sampling = sized<cairn_sampling>();
    cairn_sampling_init(pools_.models.any<cairn_model>(random_), &sampling, sizeof sampling);
    sampling.max_tokens = int32_t(random_() % 8);
    sampling.mirostat = int32_t(random_() % 3);
    sampling.flags = random_() % 2 == 0 ? CAIRN_SAMPLING_RECEIPT : 0;
    sampling.grammar = random_() % 4 == 0 ? "root ::= [a-z ]*" : nullptr;
    return cairn_set_sampling(c, &sampling, &error_);
  }

  Pools& pools_;
  std::vector<cairn_token> prompt_;
  std::mt19937 random_;
  std::array<char, 4096> receipt_{};
  std::vector<float> row_ = std::vector<float>(2048, 1.0f);  // Of the built-in model.
  std::string wrong_;
  int done_count_ = 0;
  cairn_error error_ = sized<cairn_error>();
};

void call_at_random(test::Opened& opened) {
  const auto prompt = opened.chat("What is the capital of France?");
  Pools pools;
  pools.models.add(opened.model);
  pools.engines.add(opened.engine);
  std::array<int, 8> wrong_counts{};
  std::array<int, 8> done_counts{};
  std::array<std::string, 8> wrong;
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < wrong_counts.size(); ++thread) {
    threads.emplace_back([&, thread] {
      Caller caller(&pools, prompt, uint32_t(thread) + 1);
      for (int count = 0; count < 1500; ++count) wrong_counts[thread] += int(!caller.call());
      wrong[thread] = caller.wrong();
      done_counts[thread] = caller.done_count();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong_counts, (std::array<int, 8>{})) << testing::PrintToString(wrong);
  for (const int count : done_counts) EXPECT_GT(count, 300);
  for (void* c : pools.conversations.all()) {
    cairn_conversation_close(static_cast<cairn_conversation*>(c));
  }
  for (void* snapshot : pools.snapshots.all()) {
    cairn_snapshot_release(static_cast<cairn_snapshot*>(snapshot));
  }
  for (void* row : pools.rows.all()) cairn_logits_release(static_cast<cairn_logits*>(row));
}

TEST(RandomCalls, AreAnswered) {
  cairn_engine_params params = sized<cairn_engine_params>();
  params.context_tokens = 64;
  params.memory_budget_bytes = uint64_t(8) << 20;  // Little enough to be full at times.
  test::Opened opened(test::nano_path(), params);
  call_at_random(opened);
  const auto prompt = opened.chat("What is the capital of France?");
  cairn_conversation* const c = opened.conversation();
  test::set_greedy(opened.model, c, 40);
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, &opened.error), CAIRN_OK);
  EXPECT_EQ(test::answer_of(c), "The capital of France is Paris.");
  cairn_conversation_close(c);
}

// The same on another runtime, which may do all, or nothing beside reading.
TEST(RandomCalls, AreAnsweredByAnotherRuntime) {
  cairn_engine_params params = sized<cairn_engine_params>();
  params.context_tokens = 64;
  params.options_json = R"({"backend": "fake"})";
  for (const uint32_t capabilities : {0u, 3u}) {
    test::fake_settings().switches = {.capabilities = capabilities, .cancels_late = true};
    test::Opened opened(test::nano_path(), params);
    std::string answers[2];
    for (std::string& answer : answers) {
      const auto prompt = opened.chat("What?");
      cairn_conversation* const c = opened.conversation();
      test::set_greedy(opened.model, c, 20);
      ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, &opened.error), CAIRN_OK);
      answer = test::answer_of(c);
      cairn_conversation_close(c);
      if (&answer == answers) call_at_random(opened);
    }
    EXPECT_EQ(answers[0], answers[1]);
  }
}

}  // namespace
}  // namespace cairn::random_calls_test
