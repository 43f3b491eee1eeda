// What callers do wrong is an error each, and harms nobody: NULL, handles that are closed or none,
// sizes, huge counts, two threads at once, calls from callbacks, fork(), odd floating-point states.
#include <cairn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <random>
#include <thread>

#include "tests/capi/opened.h"

namespace cairn::misuse_test {
namespace {

using test::Opened;
using test::sized;

template <class Handle>
Handle* handle_of(uint64_t bits) {
  return reinterpret_cast<Handle*>(bits);
}

// Every function with this conversation, snapshot, engine, model and row, which are none.
void expect_all_refuse(uint64_t bits) {
  SCOPED_TRACE(bits);
  auto* const model = handle_of<cairn_model>(bits);
  auto* const engine = handle_of<cairn_engine>(bits);
  auto* const c = handle_of<cairn_conversation>(bits);
  auto* const snapshot = handle_of<cairn_snapshot>(bits);
  auto* const row = handle_of<cairn_logits>(bits);
  cairn_error error = sized<cairn_error>();
  cairn_engine* new_engine = nullptr;
  cairn_conversation* new_c = nullptr;
  cairn_snapshot* new_snapshot = nullptr;
  cairn_logits* new_row = nullptr;
  cairn_engine_facts facts = sized<cairn_engine_facts>();
  cairn_memory memory = sized<cairn_memory>();
  cairn_plan plan = sized<cairn_plan>();
  cairn_event event = sized<cairn_event>();
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_token token = 1;
  float value = 0;
  size_t count = 7;
  char letter = 'a';
  const cairn_status statuses[] = {
      cairn_tokenize(model, "a", 1, 0, &token, 1, &count, &error),
      cairn_detokenize(model, &token, 1, 0, &letter, 1, &count, &error),
      cairn_chat_render(model, "[]", 2, &token, 1, &count, &error),
      cairn_engine_open(model, nullptr, &new_engine, &error),
      cairn_engine_get_facts(engine, &facts, &error),
      cairn_engine_get_memory(engine, &memory, &error),
      cairn_plan_prompt(engine, &token, 1, &plan, &error),
      cairn_embed(engine, &token, 1, &value, 1, &count, &error),
      cairn_conversation_open(engine, &new_c, &error),
      cairn_prefill(c, &token, 1, &plan, &error),
      cairn_sync(c, &token, 1, &plan, &error),
      cairn_rewind(c, 0, &plan, &error),
      cairn_plan_rewind(c, 0, &plan, &error),
      cairn_reset(c, &error),
      cairn_set_sampling(c, &sampling, &error),
      cairn_sample(c, nullptr, 0, &token, &error),
      cairn_set_logits(c, &value, 1, &error),
      cairn_score(engine, &token, 1, nullptr, nullptr, 0, &error),
      cairn_next(c, &event, &error),
      cairn_start(c, &error),
      cairn_poll(c, &event, &error),
      cairn_logits_acquire(c, &new_row, &error),
      cairn_snapshot_take(c, &new_snapshot, &error),
      cairn_rewind_to(c, snapshot, &plan, &error),
      cairn_fork(c, snapshot, &new_c, &error),
      cairn_save(c, "name", &error),
      cairn_restore(c, "name", &plan, &error)};
  for (size_t index = 0; index < std::size(statuses); ++index) {
    EXPECT_EQ(statuses[index], CAIRN_E_INVALID) << index;
  }
  EXPECT_EQ(error.code, CAIRN_E_INVALID);
  EXPECT_NE(error.message[0], '\0');
  EXPECT_EQ(cairn_model_info_json(model), nullptr);
  EXPECT_EQ(cairn_tokens(c, &count), nullptr);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(cairn_wait_fd(c), -1);
  EXPECT_EQ(cairn_logits_data(row, &count), nullptr);
  EXPECT_EQ(cairn_snapshot_position(snapshot), 0u);
  cairn_sampling_init(model, &sampling, sizeof sampling);
  EXPECT_EQ(sampling.max_tokens, 0);
  cairn_cancel(c);
  cairn_logits_release(row);
  cairn_snapshot_release(snapshot);
  cairn_conversation_close(c);
  cairn_engine_close(engine);
  cairn_model_close(model);
}

TEST(Misuse, HandlesThatAreNoneAreRefused) {
  int local = 0;
  std::mt19937_64 random(1);
  const uint64_t wrong[] = {0,
                            1,
                            16,
                            UINT64_MAX,
                            uint64_t(1) << 51,
                            uint64_t(reinterpret_cast<uintptr_t>(&local)),
                            random(),
                            random()};
  for (const uint64_t bits : wrong) expect_all_refuse(bits);
}

TEST(Misuse, ClosedAndForeignHandlesAreRefused) {
  Opened opened(test::nano_path());
  cairn_conversation* const c = opened.conversation();
  // A handle of another kind is none; and what is open stays so.
  EXPECT_EQ(cairn_tokens(handle_of<cairn_conversation>(uint64_t(opened.engine)), nullptr), nullptr);
  cairn_engine_close(handle_of<cairn_engine>(uint64_t(c)));
  EXPECT_EQ(cairn_reset(c, nullptr), CAIRN_OK);
  cairn_conversation_close(c);
  expect_all_refuse(uint64_t(c));
  cairn_conversation* const next = opened.conversation();
  EXPECT_NE(next, c);
  expect_all_refuse(uint64_t(c));
  EXPECT_EQ(cairn_reset(next, nullptr), CAIRN_OK);
  // Of another engine.
  Opened other(test::nano_path());
  cairn_conversation* const elsewhere = other.conversation();
  cairn_snapshot* snapshot = nullptr;
  ASSERT_EQ(cairn_snapshot_take(elsewhere, &snapshot, nullptr), CAIRN_OK);
  cairn_conversation* forked = nullptr;
  EXPECT_EQ(cairn_rewind_to(next, snapshot, nullptr, nullptr), CAIRN_E_MISMATCH);
  EXPECT_EQ(cairn_fork(next, snapshot, &forked, nullptr), CAIRN_E_MISMATCH);
  cairn_snapshot_release(snapshot);
  cairn_conversation_close(elsewhere);
  cairn_conversation_close(next);
}

TEST(Misuse, ArgumentsAreChecked) {
  Opened opened(test::nano_path());
  cairn_conversation* const c = opened.conversation();
  cairn_error* const e = &opened.error;
  cairn_token tokens[] = {1, 2, 3};
  size_t count = 0;
  cairn_model* model = nullptr;
  EXPECT_EQ(cairn_model_open(nullptr, &model, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_model_open("/nowhere", &model, e), CAIRN_E_IO);
  EXPECT_EQ(cairn_model_open("/nowhere", nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_engine_open(opened.model, nullptr, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_conversation_open(opened.engine, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_tokenize(opened.model, nullptr, 3, 0, tokens, 3, &count, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_tokenize(opened.model, "a", SIZE_MAX, 0, tokens, 3, &count, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_tokenize(opened.model, "a", 1, 0, tokens, 3, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_tokenize(opened.model, "a", 1, 64, tokens, 3, &count, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_tokenize(opened.model, "What is this?", 13, 0, nullptr, 3, &count, e),
            CAIRN_E_NO_ROOM);
  EXPECT_GT(count, 0u);
  tokens[1] = -1;
  char text[8];
  EXPECT_EQ(cairn_detokenize(opened.model, tokens, 3, 0, text, 8, &count, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_prefill(c, tokens, 3, nullptr, e), CAIRN_E_INVALID);
  tokens[1] = INT32_MAX;
  EXPECT_EQ(cairn_sync(c, tokens, 3, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_sync(c, nullptr, 3, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_sync(c, tokens, SIZE_MAX, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_sync(c, tokens, INT32_MAX, nullptr, e), CAIRN_E_NO_ROOM);
  EXPECT_EQ(cairn_rewind(c, 1, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_rewind(c, UINT32_MAX, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_next(c, nullptr, e), CAIRN_E_INVALID);
  cairn_event event = sized<cairn_event>();
  EXPECT_EQ(cairn_next(c, &event, e), CAIRN_E_INVALID);  // Nothing was read.
  EXPECT_EQ(cairn_start(c, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_set_sampling(c, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_sample(c, nullptr, 0, nullptr, e), CAIRN_E_INVALID);
  float logit = 0;
  cairn_token token = 0;
  EXPECT_EQ(cairn_sample(c, &logit, 1, &token, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_sample(c, &logit, 0, &token, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_logits_acquire(c, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_snapshot_take(c, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_fork(c, nullptr, nullptr, e), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_save(c, "name", e), CAIRN_E_UNSUPPORTED);
  EXPECT_EQ(cairn_embed(opened.engine, tokens, 1, nullptr, 0, &count, e), CAIRN_E_UNSUPPORTED);
  EXPECT_EQ(cairn_chat_render(opened.model, "{", 1, tokens, 3, &count, e), CAIRN_E_FORMAT);
  cairn_conversation_close(c);
}

TEST(Misuse, SizesOfStructsAreChecked) {
  Opened opened(test::nano_path());
  cairn_conversation* const c = opened.conversation();
  struct Longer {
    cairn_plan plan;
    uint64_t later[4];
  };
  for (const uint32_t size : {0u, 4u, uint32_t(sizeof(cairn_plan) - 1), UINT32_MAX}) {
    SCOPED_TRACE(size);
    cairn_plan plan{};
    plan.struct_size = size;
    EXPECT_EQ(cairn_plan_rewind(c, 0, &plan, &opened.error), CAIRN_E_INVALID);
    cairn_memory memory{};
    memory.struct_size = size;
    EXPECT_EQ(cairn_engine_get_memory(opened.engine, &memory, nullptr), CAIRN_E_INVALID);
    cairn_engine_params params{};
    params.struct_size = size;
    cairn_engine* engine = nullptr;
    EXPECT_EQ(cairn_engine_open(opened.model, &params, &engine, nullptr), CAIRN_E_INVALID);
    cairn_error error{};
    error.struct_size = size == UINT32_MAX ? size : 3;
    error.message[0] = '?';
    EXPECT_EQ(cairn_reset(nullptr, &error), CAIRN_E_INVALID);
    EXPECT_EQ(error.message[0], '?');
    cairn_sampling sampling{};
    cairn_sampling_init(opened.model, &sampling, size);
    EXPECT_EQ(sampling.struct_size, 0u);
  }
  // A later version's: what this one does not know is 0, and has to be.
  Longer longer{};
  longer.plan.struct_size = sizeof longer;
  longer.later[1] = 5;
  EXPECT_EQ(cairn_plan_rewind(c, 0, &longer.plan, &opened.error), CAIRN_OK);
  EXPECT_EQ(longer.plan.struct_size, sizeof longer);
  EXPECT_EQ(longer.later[1], 0u);
  struct LongerSampling {
    cairn_sampling sampling;
    uint64_t later;
  };
  LongerSampling more{};
  cairn_sampling_init(opened.model, &more.sampling, sizeof more);
  EXPECT_EQ(cairn_set_sampling(c, &more.sampling, nullptr), CAIRN_OK);
  more.later = 1;
  EXPECT_EQ(cairn_set_sampling(c, &more.sampling, nullptr), CAIRN_E_INVALID);
  cairn_conversation_close(c);
}

TEST(Misuse, SamplingIsChecked) {
  Opened opened(test::nano_path());
  cairn_conversation* const c = opened.conversation();
  cairn_sampling good = sized<cairn_sampling>();
  cairn_sampling_init(opened.model, &good, sizeof good);
  const auto status_with = [&](const auto& change) {
    cairn_sampling changed = good;
    change(changed);
    return cairn_set_sampling(c, &changed, &opened.error);
  };
  EXPECT_EQ(status_with([](cairn_sampling&) {}), CAIRN_OK);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.temperature = -1; }), CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.top_p = NAN; }), CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.mirostat = 3; }), CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.max_tokens = -2; }), CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.flags = 128; }), CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.samplers = "nonsense"; }), CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.samplers = "top_k;temperature"; }), CAIRN_OK);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.stop_json = "[1]"; }), CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.stop_json = "[\"\"]"; }), CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.stop_json = "{"; }), CAIRN_E_FORMAT);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.logit_bias_json = "[[1]]"; }), CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) { s.logit_bias_json = "[[99999999, 1]]"; }),
            CAIRN_E_INVALID);
  EXPECT_EQ(status_with([](cairn_sampling& s) {
              s.logit_bias_json = R"([[1, -2.5], ["Oslo", 1], [2, false]])";
            }),
            CAIRN_OK);
  EXPECT_LT(status_with([](cairn_sampling& s) { s.grammar = "root ::= nowhere"; }), 0);
  EXPECT_EQ(status_with([](cairn_sampling& s) {
              s.grammar = "root ::= \"a\"";
              s.json_schema = "{}";
            }),
            CAIRN_E_INVALID);
  cairn_conversation_close(c);
}

// One of two has it; the other one is told so, or comes later.
TEST(Misuse, TwoThreadsOnOneConversation) {
  Opened opened(test::nano_path());
  cairn_conversation* const c = opened.conversation();
  test::set_greedy(opened.model, c, -1);
  const auto prompt = opened.chat("Hello");
  std::atomic<int> busy_count = 0, other_count = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      cairn_event event = sized<cairn_event>();
      for (int round = 0; round < 60; ++round) {
        cairn_status status = CAIRN_OK;
        if ((thread + round) % 3 == 0) status = cairn_rewind(c, 0, nullptr, nullptr);
        if ((thread + round) % 3 == 1) {
          status = cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr);
        }
        if ((thread + round) % 3 == 2) status = cairn_next(c, &event, nullptr);
        busy_count += int(status == CAIRN_E_BUSY);
        const bool is_known = status == CAIRN_OK || status == CAIRN_DONE ||
                              status == CAIRN_E_BUSY || status == CAIRN_E_INVALID;
        other_count += int(!is_known);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(other_count, 0);
  EXPECT_GT(busy_count, 0);
  cairn_conversation_close(c);
}

// Whoever closes does not wait for whoever computes, who ends soon.
TEST(Misuse, ClosingWhileACallComputes) {
  Opened opened(test::nano_path());
  for (int round = 0; round < 10; ++round) {
    cairn_conversation* const c = opened.conversation();
    cairn_sampling sampling = sized<cairn_sampling>();
    cairn_sampling_init(opened.model, &sampling, sizeof sampling);
    sampling.flags = CAIRN_SAMPLING_IGNORE_END;
    ASSERT_EQ(cairn_set_sampling(c, &sampling, nullptr), CAIRN_OK);
    const auto prompt = opened.chat("Hello");
    ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
    cairn_status last = CAIRN_OK;
    std::thread other([&] {
      cairn_event event = sized<cairn_event>();
      while (last == CAIRN_OK) last = cairn_next(c, &event, nullptr);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    cairn_conversation_close(c);
    other.join();
    EXPECT_TRUE(last == CAIRN_CANCELLED || last == CAIRN_E_INVALID || last == CAIRN_DONE) << last;
    // One whose answer is being made.
    cairn_conversation* const background = opened.conversation();
    ASSERT_EQ(cairn_set_sampling(background, &sampling, nullptr), CAIRN_OK);
    ASSERT_EQ(cairn_sync(background, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
    ASSERT_EQ(cairn_start(background, nullptr), CAIRN_OK);
    cairn_conversation_close(background);
  }
}

TEST(Misuse, CallbacksCannotCallTheLibrary) {
  cairn_model* model = nullptr;
  ASSERT_EQ(cairn_model_open(test::nano_path().c_str(), &model, nullptr), CAIRN_OK);
  struct Seen {
    cairn_model* model;
    int calls = 0, refused = 0;
  } seen{.model = model};
  cairn_engine_params params = sized<cairn_engine_params>();
  params.thread_count = 1;
  params.memory_budget_bytes = uint64_t(64) << 20;
  params.user = &seen;
  params.progress = [](void* user, float) {
    Seen& told = *static_cast<Seen*>(user);
    ++told.calls;
    size_t count = 0;
    const cairn_status status = cairn_tokenize(told.model, "a", 1, 0, nullptr, 0, &count, nullptr);
    told.refused += int(status == CAIRN_E_INVALID);
    return true;
  };
  cairn_engine* engine = nullptr;
  cairn_error error = sized<cairn_error>();
  ASSERT_EQ(cairn_engine_open(model, &params, &engine, &error), CAIRN_OK) << error.message;
  EXPECT_GT(seen.calls, 0);
  EXPECT_EQ(seen.refused, seen.calls);
  cairn_engine_close(engine);
  params.progress = [](void*, float) { return false; };
  EXPECT_EQ(cairn_engine_open(model, &params, &engine, &error), CAIRN_CANCELLED);
  EXPECT_EQ(engine, nullptr);
  cairn_model_close(model);
}

TEST(Misuse, ForkedChildrenHaveNoHandles) {
  Opened opened(test::nano_path());
  cairn_conversation* const c = opened.conversation();
  const auto prompt = opened.chat("Hello");
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cairn_event event = sized<cairn_event>();
    cairn_cancel(c);
    const bool is_refused = cairn_next(c, &event, nullptr) == CAIRN_E_INVALID &&
                            cairn_model_info_json(opened.model) == nullptr &&
                            cairn_wait_fd(c) == -1;
    cairn_conversation_close(c);
    cairn_engine_close(opened.engine);
    cairn_model_close(opened.model);
    // What the child opens is its own.
    cairn_model* own = nullptr;
    const bool can_open = cairn_model_open(test::nano_path().c_str(), &own, nullptr) == CAIRN_OK;
    cairn_model_close(own);
    ::_exit(is_refused && can_open ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  cairn_event event = sized<cairn_event>();
  EXPECT_EQ(cairn_next(c, &event, nullptr), CAIRN_OK);
  cairn_conversation_close(c);
}

// Rounding, traps and denormals of the caller: the same bits, and its state as it was.
TEST(Misuse, TheCallersFloatingPointStateDoesNoHarm) {
  std::vector<float> rows[2];
  cairn_token chosen[2] = {};
  for (int round = 0; round < 2; ++round) {
    std::fenv_t usual;
    ASSERT_EQ(std::feholdexcept(&usual), 0);
    if (round == 1) {
      std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
      // Denormals are zeros; every exception but "inexact" traps.
      __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() | 0x8040u) & ~0x0e80u);
      const unsigned int before = __builtin_ia32_stmxcsr();
#endif
      {
        Opened opened(test::nano_path());
        cairn_conversation* const c = opened.conversation();
        const auto tokens = test::some_tokens(30);
        EXPECT_EQ(cairn_sync(c, tokens.data(), tokens.size(), nullptr, nullptr), CAIRN_OK);
        rows[1] = test::logits_of(c);
        EXPECT_EQ(cairn_sample(c, nullptr, 0, &chosen[1], nullptr), CAIRN_OK);
        cairn_conversation_close(c);
      }
#if defined(__x86_64__)
      EXPECT_EQ(__builtin_ia32_stmxcsr() & ~0x3fu, before & ~0x3fu);
#endif
      EXPECT_EQ(std::fegetround(), FE_UPWARD);
    } else {
      Opened opened(test::nano_path());
      cairn_conversation* const c = opened.conversation();
      const auto tokens = test::some_tokens(30);
      EXPECT_EQ(cairn_sync(c, tokens.data(), tokens.size(), nullptr, nullptr), CAIRN_OK);
      rows[0] = test::logits_of(c);
      cairn_conversation_close(c);
    }
    std::fesetenv(&usual);
  }
  EXPECT_TRUE(test::same_bits(rows[0], rows[1]));
}

TEST(Misuse, TheCallersThreadKeepsItsCpus) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cairn_engine_params params = sized<cairn_engine_params>();
  params.thread_count = 2;
  Opened opened(test::nano_path(), params);
  cairn_conversation* const c = opened.conversation();
  const auto tokens = test::some_tokens(30);
  ASSERT_EQ(cairn_sync(c, tokens.data(), tokens.size(), nullptr, nullptr), CAIRN_OK);
  cpu_set_t after;
  CPU_ZERO(&after);
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  cairn_conversation_close(c);
}

}  // namespace
}  // namespace cairn::misuse_test
