// The caller's thread runs out of memory at each of its allocations, one after the other: every
// call says so or succeeds, nothing is ended, and the next attempt finds all as it was.
#include <cairn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>

#include "tests/capi/fake_backend.h"
#include "tests/capi/opened.h"

namespace {

// Of this thread; at 0 none is refused.
thread_local int64_t allocations_left = 0;
thread_local int64_t allocation_count = 0;

}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  ++allocation_count;
  if (allocations_left > 0 && --allocations_left == 0) std::__throw_bad_alloc();
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::__throw_bad_alloc();
  return memory;
}

// std::stable_sort takes its buffer so. A sanitizer would allocate it, and miss the pair's other
// half.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (allocations_left > 0 && --allocations_left == 0) return nullptr;
  return std::malloc(size == 0 ? 1 : size);
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}

namespace cairn::no_memory_test {
namespace {

using test::sized;

// The status of a call whose allocation number `at` is refused; `was_refused`: whether it had so
// many.
cairn_status with_refusal(int64_t at, const std::function<cairn_status()>& call,
                          bool& was_refused) {
  allocations_left = at;
  const cairn_status status = call();
  was_refused = allocations_left == 0;
  allocations_left = 0;
  return status;
}

// Some sanitizers allocate themselves.
class NoMemory : public testing::Test {
 protected:
  void SetUp() override {
    const int64_t before = allocation_count;
    operator delete(operator new(1));
    if (allocation_count == before) GTEST_SKIP() << "allocations are the sanitizer's";
  }
};

// `answer`: greedy; empty: as it comes.
void refuse_everywhere(test::Opened& opened, const std::string& answer) {
  const auto prompt = opened.chat("What is the capital of France?");
  cairn_conversation* c = opened.conversation();
  cairn_conversation* made = nullptr;
  cairn_snapshot* snapshot = nullptr;
  cairn_logits* row = nullptr;
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(opened.model, &sampling, sizeof sampling);
  sampling.temperature = 0;
  sampling.max_tokens = 40;
  if (answer.empty()) sampling.flags = CAIRN_SAMPLING_IGNORE_END;
  sampling.stop_json = R"(["nothing of the kind"])";
  cairn_event event = sized<cairn_event>();
  cairn_token token = 0;
  const auto close_made = [&](cairn_status status) {
    cairn_conversation_close(made);
    cairn_snapshot_release(snapshot);
    cairn_logits_release(row);
    return status;
  };
  const std::function<cairn_status()> calls[] = {
      [&] { return cairn_set_sampling(c, &sampling, nullptr); },
      [&] { return cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr); },
      [&] { return cairn_rewind(c, 4, nullptr, nullptr); },
      [&] { return cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr); },
      [&] { return cairn_sample(c, nullptr, 0, &token, nullptr); },
      [&] { return close_made(cairn_conversation_open(opened.engine, &made, nullptr)); },
      [&] { return close_made(cairn_snapshot_take(c, &snapshot, nullptr)); },
      [&] { return close_made(cairn_fork(c, nullptr, &made, nullptr)); },
      [&] { return close_made(cairn_logits_acquire(c, &row, nullptr)); },
  };
  for (size_t index = 0; index < std::size(calls); ++index) {
    bool was_refused = true;
    for (int64_t at = 1; was_refused && at < 3000; ++at) {
      SCOPED_TRACE(testing::Message() << index << " at " << at);
      made = nullptr;
      snapshot = nullptr;
      row = nullptr;
      const cairn_status status = with_refusal(at, calls[index], was_refused);
      // Closing asks again until it is heard.
      ASSERT_TRUE(status == CAIRN_E_NO_ROOM || status == CAIRN_OK) << status;
    }
    EXPECT_FALSE(was_refused);
  }
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  const std::string expected = answer.empty() ? test::answer_of(c) : answer;
  while (cairn_rewind(c, uint32_t(prompt.size()), nullptr, nullptr) != CAIRN_OK) {
  }
  // Each token too.
  std::string text;
  cairn_status status = CAIRN_OK;
  int refused_count = 0;
  for (int64_t at = 1; status != CAIRN_DONE && at < 5000; ++at) {
    bool was_refused = false;
    status = with_refusal(
        1 + at % (answer.empty() ? 90 : 9), [&] { return cairn_next(c, &event, nullptr); },
        was_refused);
    refused_count += int(status == CAIRN_E_NO_ROOM);
    ASSERT_TRUE(status == CAIRN_OK || status == CAIRN_E_NO_ROOM || status == CAIRN_DONE) << status;
    if (status == CAIRN_OK) text.append(event.text, event.text_bytes);
  }
  // An answer that is refused memory ends, and the next one goes on.
  EXPECT_EQ(text.substr(0, expected.size()), expected);
  EXPECT_GT(refused_count, 0);
  cairn_conversation_close(c);
}

TEST_F(NoMemory, EveryAllocationOfTheCallersMayFail) {
  test::Opened opened(test::nano_path());
  refuse_everywhere(opened, "The capital of France is Paris.");
}

cairn_engine_params fake_params() {
  test::fake_settings().switches = {.context_tokens = 40000};
  cairn_engine_params params = sized<cairn_engine_params>();
  params.options_json = R"({"backend": "fake"})";
  return params;
}

// On another runtime callers compute themselves.
TEST_F(NoMemory, EveryAllocationMayFailOnAnotherRuntime) {
  test::Opened opened(test::nano_path(), fake_params());
  refuse_everywhere(opened, "");
}

// Memory grows by doubling, which is no allocation of a token.
TEST_F(NoMemory, TokensAllocateNothing) {
  test::Opened opened(test::nano_path(), fake_params());
  cairn_conversation* c = opened.conversation();
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(opened.model, &sampling, sizeof sampling);
  sampling.temperature = 0;
  sampling.flags = CAIRN_SAMPLING_IGNORE_END;
  ASSERT_EQ(cairn_set_sampling(c, &sampling, nullptr), CAIRN_OK);
  const cairn_token prompt = 100;
  ASSERT_EQ(cairn_sync(c, &prompt, 1, nullptr, nullptr), CAIRN_OK);
  cairn_event event = sized<cairn_event>();
  int64_t allocating_count = 0;
  for (int count = 0; count < 30000; ++count) {
    const int64_t before = allocation_count;
    ASSERT_EQ(cairn_next(c, &event, nullptr), CAIRN_OK);
    allocating_count += int64_t(allocation_count > before);
  }
  EXPECT_LT(allocating_count, 100);
  cairn_conversation_close(c);
}

}  // namespace
}  // namespace cairn::no_memory_test
