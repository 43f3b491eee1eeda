// What the process forbids itself, and its last words.
#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/output_file.h"
#include "tests/scratch_folder.h"

namespace cairn::process_test {
namespace {

// Attack 31.
TEST(ProcessDeathTest, ForbidsItself) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // A process whose mask nobody has changed.
  const auto check = [] {
    ::umask(027);
    forbid_process();
    struct rlimit core = {};
    ::getrlimit(RLIMIT_CORE, &core);
    const bool holds = core.rlim_cur == 1 && core.rlim_max == 1 &&
                       ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && ::umask(0) == 077 &&
                       shared_file_mask() == 027;
    ::_exit(holds ? 0 : 1);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

TEST(ProcessDeathTest, NoFileGetsTheNumberOfAStandardStream) {
  const auto check = [] {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    forbid_process();
    const int opened = ::open("/dev/null", O_RDONLY);
    char byte = 0;
    const bool fails = ::write(STDOUT_FILENO, "x", 1) == -1 && errno == EBADF &&
                       ::read(STDIN_FILENO, &byte, 1) == -1 && errno == EBADF;
    ::_exit(opened > STDERR_FILENO && fails ? 0 : 1);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

// A limit of file sizes, as `ulimit -f` sets it.
TEST(ProcessDeathTest, AFileThatMayNotGrowIsAnError) {
  const test::ScratchFolder folder;
  const auto check = [&] {
    forbid_process();
    const struct rlimit limit = {4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::vector<std::byte> bytes(10000);
    const Status status = write_file(folder.file("a"), bytes);
    ::_exit(!status && status.error().message.ends_with("cannot write: File too large") ? 0 : 1);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// As text_of() finds it when it is called where a statement of the C++ library's failed.
template <class Fails>
std::string text_of(Fails fails) {
  try {
    fails();
  } catch (...) {
    return exception_text();
  }
  return "nothing failed";
}

TEST(Process, AnExceptionSaysWhatWasTooMuch) {
  const std::string memory =
      text_of([] { std::rethrow_exception(std::make_exception_ptr(std::bad_alloc())); });
  EXPECT_TRUE(memory.starts_with("not enough memory: ")) << memory;
  EXPECT_NE(memory.find(" were in use"), std::string::npos) << memory;
  EXPECT_TRUE(text_of([] { std::vector<char>().reserve(size_t(-1)); }).starts_with("not enough"));
  const std::string range = text_of([] { (void)std::string().at(1); });
  EXPECT_NE(range.find("at"), std::string::npos) << range;
}

TEST(ProcessDeathTest, NobodysExceptionEndsWithALine) {
  const auto fails_elsewhere = [] {
    install_last_catch();
    std::thread([] { std::rethrow_exception(std::make_exception_ptr(std::bad_alloc())); }).join();
  };
  EXPECT_EXIT(fails_elsewhere(), testing::ExitedWithCode(1), "cairn: not enough memory: ");
}

}  // namespace
}  // namespace cairn::process_test
