// Steady decoding: a token computes, and neither allocates nor asks the kernel for anything. The
// kernel itself is the witness: a child process that decodes under a filter of system calls dies of
// the first one that is not allowed.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>

#include "engine/generator.h"
#include "tests/models/golden_model.h"
#include "tests/sanitized.h"

namespace {

std::atomic<int64_t> allocation_count{0};

void* counted_allocation(size_t bytes, size_t align) {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  void* memory = nullptr;
  if (::posix_memalign(&memory, std::max(align, sizeof(void*)), std::max<size_t>(bytes, 1)) != 0) {
    std::abort();
  }
  return memory;
}

}  // namespace

// Inlined, half of a pair alone would look like memory that another allocator gives back.
#define CAIRN_NOT_INLINED __attribute__((noinline))

CAIRN_NOT_INLINED void* operator new(size_t bytes) {
  return counted_allocation(bytes, alignof(std::max_align_t));
}
// std::stable_sort takes its buffer so. A sanitizer would allocate it, and miss the pair's other
// half.
CAIRN_NOT_INLINED void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return counted_allocation(bytes, alignof(std::max_align_t));
}
CAIRN_NOT_INLINED void* operator new(size_t bytes, std::align_val_t align) {
  return counted_allocation(bytes, size_t(align));
}
CAIRN_NOT_INLINED void operator delete(void* memory) noexcept {
  std::free(memory);
}
CAIRN_NOT_INLINED void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
CAIRN_NOT_INLINED void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
CAIRN_NOT_INLINED void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace cairn::test::steady_test {
namespace {

constexpr int kNoFilterCode = 3;
constexpr int kNoFilter = kNoFilterCode << 8;  // As waitpid() says it.
constexpr int32_t kWarmTokens = 140, kSteadyTokens = 200;

// Reads a prompt and decodes long enough that every buffer has its size.
class Decoder {
 public:
  Decoder(const std::string& model, int32_t thread_count)
      : Decoder(golden_path(model, ".gguf"), thread_count, {}) {}
  Decoder(const std::string& path, int32_t thread_count, std::vector<AdapterChoice> adapters) {
    EngineOptions options = golden_options(KvType::f16);
    options.thread_count = thread_count;
    options.row_count_max = 64;
    options.adapters = std::move(adapters);
    engine_ = load_engine(path, options);
    generator_.emplace(engine_.get());
    std::vector<Token> prompt;
    for (int32_t index = 0; index < 50; ++index) prompt.push_back(Token(index * 7 % 384));
    EXPECT_TRUE(bool(generator_->read(prompt)));
    EXPECT_TRUE(decode(kWarmTokens));
  }
  bool decode(int32_t count) {
    for (int32_t index = 0; index < count; ++index) {
      Result<Token> token = generator_->sample(sampler_);
      if (!token || !generator_->advance(*token)) return false;
    }
    return true;
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::optional<Generator> generator_;
  sample::Sampler sampler_{sample::SamplingParams{}};
};

// From here on this process may only compute, tell and end; with a team, its members may also wait
// for each other, which a machine that has other work to do can make necessary at any time.
void forbid_system_calls(bool allows_waiting) {
  constexpr int kEnding[] = {SYS_exit_group, SYS_write};
  constexpr int kWaiting[] = {
      SYS_futex,  SYS_sched_yield,  SYS_sched_setaffinity, SYS_sched_getaffinity,
      SYS_gettid, SYS_clock_gettime};
  std::vector<sock_filter> filter;
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  const auto allow = [&](int number) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(number), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  };
  for (const int number : kEnding) allow(number);
  for (const int number : kWaiting) {
    if (allows_waiting) allow(number);
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog program{.len = uint16_t(filter.size()), .filter = filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(kNoFilterCode);
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    ::_exit(kNoFilterCode);
  }
}

// How a child ends that runs `work` under the filter: well, without a filter, or by a signal.
template <class Work>
int status_under_filter(const std::string& model, int32_t thread_count, Work work) {
  if (test::kIsSanitized) return kNoFilter;  // It makes system calls of its own.
  const pid_t child = ::fork();
  if (child == 0) {
    Decoder decoder(model, thread_count);
    forbid_system_calls(thread_count > 1);
    ::_exit(work(decoder) ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

std::vector<std::string> steady_models() {
  const std::vector<std::string>& supported = supported_cases();
  std::vector<std::string> names;
  for (const char* name : {"llama", "gemma3", "granitehybrid", "qwen3moe", "lfm2", "qwen3next"}) {
    if (std::binary_search(supported.begin(), supported.end(), name)) names.emplace_back(name);
  }
  return names;
}

class SteadyTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SteadyTest, ATokenAllocatesNothing) {
  Decoder decoder(GetParam(), 2);
  const int64_t before = allocation_count.load();
  ASSERT_TRUE(decoder.decode(kSteadyTokens));
  EXPECT_EQ(allocation_count.load() - before, 0);
}

TEST_P(SteadyTest, ATokenMakesNoSystemCall) {
  for (const int32_t thread_count : {1, 2}) {
    const int status = status_under_filter(
        GetParam(), thread_count, [](Decoder& decoder) { return decoder.decode(kSteadyTokens); });
    if (status == kNoFilter) GTEST_SKIP() << "no filters here";
    EXPECT_EQ(status, 0) << thread_count << " threads";
  }
}

TEST(Steady, ATokenByAdaptersAllocatesNothing) {
  const std::string folder = std::string(CAIRN_FIXTURES) + "/adapters/";
  Decoder decoder(std::string(CAIRN_FIXTURES) + "/folders/Tiny-Llama-3.1-8B-Instruct.gguf", 2,
                  {{.path = folder + "tone.gguf"}, {.path = folder + "facts.gguf"}});
  const int64_t before = allocation_count.load();
  ASSERT_TRUE(decoder.decode(kSteadyTokens));
  EXPECT_EQ(allocation_count.load() - before, 0);
}

TEST(Steady, TheFilterSeesASystemCall) {
  const int status = status_under_filter("llama", 1, [](Decoder&) { return ::getppid() != 0; });
  if (status == kNoFilter) GTEST_SKIP() << "no filters here";
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
INSTANTIATE_TEST_SUITE_P(Models, SteadyTest, ::testing::ValuesIn(steady_models()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace cairn::test::steady_test
