// Runtimes in worker processes over a toy: the contract, workers that fail in every way, and the
// program around cairn, which notices nothing.
#include "runtimes/worker/worker_runtime.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "base/env.h"
#include "base/file.h"
#include "tests/runtimes/contract.h"

namespace cairn::worker_runtime_test {
namespace {

using runtimes::Exactness;
using runtimes::LoadedRuntime;
using runtimes::ModelProbe;
using runtimes::RuntimeSession;
using runtimes::WorkerType;

// As tests/runtimes/toy_worker.py has them.
enum : int32_t {
  kFails = 300,
  kDies,
  kHangs,
  kLiesAboutSize,
  kLiesAboutNumber,
  kChatters,
  kForgetsOutput,
  kSlow,
  kBreaks,
  kFloods,
  kAsksProcess = 310,
  kAsksDescriptors,
  kAsksFolder,
  kAsksSignals,
};

class WorkerRuntime : public testing::Test {
 protected:
  void SetUp() override {
    if (::access("/usr/bin/env", X_OK) != 0 || std::system("python3 -c ''") != 0) {
      GTEST_SKIP() << "no python3";
    }
    auto text = read_file(std::string(CAIRN_SOURCE) + "/tests/runtimes/toy_worker.py", 1 << 20);
    ASSERT_TRUE(text);
    python_ = *text;
    path_ = std::string(CAIRN_FIXTURES) + "/golden/llama.gguf";
    auto file = gguf::File::open(path_);
    ASSERT_TRUE(file);
    file_.emplace(std::move(file).value());
  }

  WorkerType type(std::chrono::milliseconds limit = std::chrono::seconds(60)) const {
    return {.name = "toy",
            .python = python_,
            .claims = {runtimes::kRewinds | runtimes::kSnapshots, Exactness::replay, "hashes"},
            .limit = limit};
  }
  Result<std::unique_ptr<LoadedRuntime>> load(const WorkerType& of) const {
    return runtimes::load_worker(of, ModelProbe{path_, &*file_}, {});
  }
  std::unique_ptr<LoadedRuntime> loaded(const WorkerType& of) const {
    auto made = load(of);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::move(*made) : nullptr;
  }

  std::string python_, path_;
  std::optional<gguf::File> file_;
};

std::unique_ptr<RuntimeSession> opened(LoadedRuntime& runtime) {
  auto session = runtime.open_session();
  EXPECT_TRUE(session) << (session ? "" : session.error().message);
  return session ? std::move(*session) : nullptr;
}

std::string error_of(RuntimeSession& session, std::vector<int32_t> ids) {
  std::vector<Token> tokens;
  for (const int32_t id : ids) tokens.push_back(Token(id));
  const auto row = session.append(tokens);
  return row ? "no error" : row.error().message;
}

// What the toy answers where it is asked.
std::string answer(RuntimeSession& session, int32_t question) {
  const std::string text = error_of(session, {question});
  return text.substr(text.find('<') + 1, text.rfind('>') - text.find('<') - 1);
}

size_t descriptor_count() {
  size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += each.path().empty() ? 0 : 1;
  }
  return count;
}

bool has_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whether the process ends soon.
bool ends(pid_t process) {
  const int descriptor = int(::syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0) return errno == ESRCH;
  pollfd ended{.fd = descriptor, .events = POLLIN, .revents = 0};
  const bool has_ended = ::poll(&ended, 1, 20000) == 1;
  ::close(descriptor);
  return has_ended;
}

TEST_F(WorkerRuntime, KeepsTheContract) {
  const auto runtime = loaded(type());
  ASSERT_NE(runtime, nullptr);
  EXPECT_EQ(test::measured(*runtime, 40), Exactness::replay);
}

TEST_F(WorkerRuntime, ErrorsOfOneCallLeaveTheSessionAsItWas) {
  const auto runtime = loaded(type());
  auto session = opened(*runtime), other = opened(*runtime);
  ASSERT_EQ(error_of(*session, {1, 2, 3}), "no error");
  EXPECT_EQ(error_of(*session, {kFails}), "toy: append: ValueError: the toy fails");
  EXPECT_EQ(error_of(*session, {384}), "toy: expected a token below 384, found 384");
  EXPECT_EQ(error_of(*session, {-1}), "toy: expected a token below 384, found -1");
  EXPECT_EQ(error_of(*session, std::vector<int32_t>(510, 1)),
            "toy: expected at most 509 tokens more, found 510");
  EXPECT_EQ(session->length(), 3u);
  const std::vector<Token> begin = {Token(1), Token(2), Token(3)}, more(300, Token(9));
  ASSERT_TRUE(other->append(begin));
  auto expected = other->append(more);
  ASSERT_TRUE(expected);
  const std::vector<float> row(expected->begin(), expected->end());
  auto found = session->append(more);
  ASSERT_TRUE(found);
  EXPECT_TRUE(test::same_bits(*found, row));
}

TEST_F(WorkerRuntime, WorkersThatDieHangOrLieAreErrors) {
  struct Case {
    int32_t token;
    std::string expected, said;
  };
  for (const Case& each :
       {Case{kDies, "toy: it has ended", "the toy dies"},
        Case{kHangs, "no answer within the limit of time", "the toy hangs"},
        Case{kLiesAboutSize, "of at most 65536 bytes, found", "1073741824 bytes"},
        Case{kLiesAboutNumber, "expected an answer to request", "of status 0"},
        Case{kFloods, "more signs of life than there are tokens", ""},
        Case{kForgetsOutput, "no answer within the limit of time", ""}}) {
    SCOPED_TRACE(each.token);
    const auto runtime = loaded(type(std::chrono::milliseconds(1500)));
    ASSERT_NE(runtime, nullptr);
    auto session = opened(*runtime);
    ASSERT_EQ(error_of(*session, {1, 2}), "no error");
    const pid_t process = pid_t(std::stoi(answer(*session, kAsksProcess)));
    const std::string error = error_of(*session, {each.token});
    EXPECT_TRUE(has_text(error, each.expected)) << error;
    EXPECT_TRUE(has_text(error, each.said)) << error;
    EXPECT_TRUE(ends(process));
    EXPECT_EQ(error_of(*session, {1}), error);  // And so is every call after it.
    EXPECT_FALSE(runtime->open_session());
  }
}

TEST_F(WorkerRuntime, EnginesThatBreakAreNotUsedAgain) {
  const auto runtime = loaded(type());
  auto session = opened(*runtime);
  EXPECT_EQ(error_of(*session, {kBreaks}), "toy: append: Broken: the toy is broken");
  EXPECT_EQ(error_of(*session, {1}), "toy: it has ended");
}

TEST_F(WorkerRuntime, HeardOutputIsKeptShort) {
  const auto runtime = loaded(type());
  auto session = opened(*runtime);
  EXPECT_EQ(error_of(*session, {kChatters}), "no error");
  EXPECT_EQ(error_of(*session, {1}), "no error");
  const std::string error = error_of(*session, {kDies});
  EXPECT_TRUE(has_text(error, "the toy dies")) << error;
  EXPECT_LT(error.size(), 1200u);
}

TEST_F(WorkerRuntime, CancelledCallsEndSoonAndNoOther) {
  const auto runtime = loaded(type());
  auto session = opened(*runtime), other = opened(*runtime);
  ASSERT_EQ(error_of(*session, {1, 2}), "no error");
  session->cancel();
  EXPECT_EQ(error_of(*session, {3}), "no error");
  std::atomic<bool> has_ended = false;
  std::thread canceller([&] {
    while (!has_ended) {
      other->cancel();
      session->cancel();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Token> slow = {Token(kSlow)};
  const auto row = session->append(slow);
  has_ended = true;
  canceller.join();
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().code, ErrorCode::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  EXPECT_EQ(session->length(), 3u);
  EXPECT_EQ(error_of(*session, {4}), "no error");
}

std::atomic<int> child_signal_count = 0;

TEST_F(WorkerRuntime, TheProgramAroundNoticesNothing) {
  struct sigaction counting = {}, before = {};
  counting.sa_handler = [](int) { ++child_signal_count; };
  ASSERT_EQ(::sigaction(SIGCHLD, &counting, &before), 0);
  sigset_t blocked, none;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &none);
  const size_t descriptors = descriptor_count();
  const int leaked = ::dup(0);  // Not marked to be closed by programs that are started.
  for (int count = 0; count < 3; ++count) {
    const auto runtime = loaded(type());
    auto session = opened(*runtime);
    EXPECT_EQ(answer(*session, kAsksFolder), std::filesystem::current_path().string());
    EXPECT_EQ(answer(*session, kAsksSignals), "SigBlk:\t0000000000000000");
    // Of its own are those for the folder that it lists and for the process that it watches.
    const std::string open = answer(*session, kAsksDescriptors);
    EXPECT_LE(std::ranges::count(open, ','), 7) << open;
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
    if (count == 1) {
      EXPECT_TRUE(has_text(error_of(*session, {kDies}), "it has ended"));
    }
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  ::close(leaked);
  EXPECT_EQ(descriptor_count(), descriptors);
  EXPECT_EQ(child_signal_count, 0);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::sigaction(SIGCHLD, &before, nullptr);
}

TEST_F(WorkerRuntime, ForksOfTheProgramAreHarmless) {
  auto runtime = loaded(type());
  auto session = opened(*runtime);
  ASSERT_EQ(error_of(*session, {1}), "no error");
  const pid_t fork = ::fork();
  if (fork == 0) {
    const bool is_refused = has_text(error_of(*session, {2}), "one that was forked off");
    session.reset();
    runtime.reset();
    ::_exit(is_refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(fork, &status, 0), fork);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(error_of(*session, {2}), "no error");
}

// Another process loads a worker, and ends without a word, while a fork of it lives on.
TEST_F(WorkerRuntime, EndsWithTheProgram) {
  int ends_of_pipe[2];
  ASSERT_EQ(::pipe(ends_of_pipe), 0);
  const pid_t host = ::fork();
  if (host == 0) {
    auto made = load(type());
    auto session = made ? opened(**made) : nullptr;
    const pid_t worker = session ? pid_t(std::stoi(answer(*session, kAsksProcess))) : -1;
    (void)!::write(ends_of_pipe[1], &worker, sizeof worker);
    if (::fork() == 0) {
      ::close(ends_of_pipe[1]);
      ::sleep(8);
      ::_exit(0);
    }
    ::_exit(0);
  }
  pid_t worker = -1;
  ASSERT_EQ(::read(ends_of_pipe[0], &worker, sizeof worker), ssize_t(sizeof worker));
  ASSERT_GT(worker, 0);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(::waitpid(host, nullptr, 0), host);
  EXPECT_TRUE(ends(worker));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(6));
  ::close(ends_of_pipe[0]);
  ::close(ends_of_pipe[1]);
}

TEST_F(WorkerRuntime, SaysWhatIsMissing) {
  WorkerType wanting = type();
  const std::string text = std::string(python_).replace(
      python_.find("modules = []"), 12, "modules = [('nosuch', 'nosuch')]; install = 'nosuch'");
  wanting.python = text;
  const Status missing = runtimes::check_worker(wanting);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(missing.error().message.starts_with("no module named nosuch; ") &&
              missing.error().message.ends_with("-m pip install nosuch"))
      << missing.error().message;
  EXPECT_TRUE(runtimes::check_worker(type()));
  const std::optional<std::string> before = env("CAIRN_PYTHON");
  ::setenv("CAIRN_PYTHON", "/no/such/python", 1);
  EXPECT_EQ(runtimes::check_worker(type()).error().message,
            "CAIRN_PYTHON: expected a Python interpreter, found /no/such/python");
  ::setenv("CAIRN_PYTHON", "nosuchpython", 1);
  EXPECT_TRUE(has_text(runtimes::check_worker(type()).error().message, "no nosuchpython on PATH"));
  ::setenv("CAIRN_PYTHON", "/bin/true", 1);
  EXPECT_TRUE(has_text(runtimes::check_worker(type()).error().message, "it has ended"));
  ::unsetenv("CAIRN_PYTHON");
  if (before) ::setenv("CAIRN_PYTHON", before->c_str(), 1);
}

}  // namespace
}  // namespace cairn::worker_runtime_test
