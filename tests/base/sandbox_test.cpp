// Each check has a process of its own: what one gives up stays given up.
#include "base/machine/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "base/machine/machine_memory.h"
#include "tests/scratch_folder.h"

namespace cairn::sandbox_test {
namespace {

// Exit codes of a check: the number of the line of what did not hold, or 0.
#define EXPECT_HERE(condition) \
  if (!(condition)) ::_exit(__LINE__ % 200 + 1)

class SandboxDeathTest : public ::testing::Test {
 protected:
  SandboxDeathTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    std::filesystem::create_directory(allowed());
    test::write_to(allowed() + "/in", "inside");
    test::write_to(outside(), "outside");
    test::write_to(model(), "weights");
  }
  void SetUp() override {
    const std::string why_not = sandbox_support().why_not;
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }

  std::string allowed() const { return folder_.file("allowed"); }
  std::string outside() const { return folder_.file("outside"); }
  std::string model() const { return folder_.file("model"); }
  void enter() const {
    const Status entered =
        enter_sandbox({.readable = {model(), folder_.file("none")}, .writable = {allowed()}});
    if (!entered) std::fprintf(stderr, "%s\n", entered.error().message.c_str());
    EXPECT_HERE(bool(entered));
  }

  const test::ScratchFolder folder_;
};

bool opens(const std::string& path, int flags) {
  const int number = ::open(path.c_str(), flags, 0600);
  if (number >= 0) ::close(number);
  return number >= 0;
}

bool is_refused(long result) {
  return result < 0 && errno == EPERM;
}

TEST_F(SandboxDeathTest, OpensWhatIsNamedAndNothingElse) {
  const auto check = [this] {
    enter();
    EXPECT_HERE(opens(model(), O_RDONLY));
    EXPECT_HERE(!opens(model(), O_WRONLY) && errno == EACCES);
    EXPECT_HERE(!opens(outside(), O_RDONLY) && errno == EACCES);
    EXPECT_HERE(!opens(outside(), O_WRONLY | O_TRUNC));
    EXPECT_HERE(!opens(folder_.file("new"), O_WRONLY | O_CREAT));
    EXPECT_HERE(!opens("/etc/passwd", O_RDONLY));
    EXPECT_HERE(!opens("/", O_RDONLY | O_DIRECTORY));
    EXPECT_HERE(::unlink(outside().c_str()) != 0);
    EXPECT_HERE(::symlink(outside().c_str(), (allowed() + "/link").c_str()) != 0);
    ::_exit(0);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

TEST_F(SandboxDeathTest, AStoreWorksInItsFolder) {
  const auto check = [this] {
    enter();
    const std::string one = allowed() + "/one", two = allowed() + "/two";
    EXPECT_HERE(opens(allowed() + "/in", O_RDONLY));
    EXPECT_HERE(::mkdir(one.c_str(), 0700) == 0 && ::mkdir(two.c_str(), 0700) == 0);
    EXPECT_HERE(opens(one + "/a", O_RDWR | O_CREAT));
    EXPECT_HERE(::truncate((one + "/a").c_str(), 5) == 0);
    EXPECT_HERE(::rename((one + "/a").c_str(), (two + "/b").c_str()) == 0);
    EXPECT_HERE(::link((two + "/b").c_str(), (one + "/c").c_str()) == 0);
    EXPECT_HERE(opens(one, O_RDONLY | O_DIRECTORY));
    EXPECT_HERE(::unlink((two + "/b").c_str()) == 0 && ::rmdir(two.c_str()) == 0);
    // Nothing is carried out of it, or into it.
    EXPECT_HERE(::rename((one + "/c").c_str(), folder_.file("c").c_str()) != 0);
    EXPECT_HERE(::link(outside().c_str(), (allowed() + "/d").c_str()) != 0);
    ::_exit(0);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

TEST_F(SandboxDeathTest, StartsNoProgramsAndMountsNothing) {
  const auto check = [this] {
    enter();
    EXPECT_HERE(is_refused(::execl("/bin/true", "true", nullptr)));
    EXPECT_HERE(is_refused(::chroot("/")));
    EXPECT_HERE(is_refused(::syscall(SYS_unshare, 0)));
    EXPECT_HERE(is_refused(::syscall(SYS_io_uring_setup, 1, nullptr)));
    EXPECT_HERE(is_refused(::syscall(SYS_bpf, 0, nullptr, 0)));
    EXPECT_HERE(::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
    ::_exit(0);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

TEST_F(SandboxDeathTest, ThreadsHaveItToo) {
  const auto check = [this] {
    enter();
    bool is_shut = false;
    std::thread([&] {
      is_shut = !opens(outside(), O_RDONLY) && is_refused(::execl("/bin/true", "true", nullptr));
    }).join();
    ::_exit(is_shut ? 0 : 1);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

int listening(uint16_t& port) {
  const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_HERE(::bind(number, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  EXPECT_HERE(::listen(number, 8) == 0);
  EXPECT_HERE(::getsockname(number, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port = ntohs(address.sin_port);
  return number;
}

int connected(uint16_t port) {
  const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(number, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return -1;
  return number;
}

// A server listens when it is in, and accepts when it is sealed; it connects to nobody.
TEST_F(SandboxDeathTest, AServerAcceptsAndConnectsToNobody) {
  const auto check = [this] {
    uint16_t port = 0;
    int ready[2];
    EXPECT_HERE(::pipe(ready) == 0);
    if (::fork() == 0) {
      EXPECT_HERE(::read(ready[0], &port, sizeof(port)) == ssize_t(sizeof(port)));
      EXPECT_HERE(connected(port) >= 0);
      ::_exit(0);
    }
    enter();
    const int server = listening(port);
    if (sandbox_support().landlock_version >= 4) EXPECT_HERE(connected(port) < 0);
    std::thread earlier([&] {
      // A thread that was there before is sealed as well.
      while (::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 &&
             !is_refused(::socket(AF_INET, SOCK_STREAM, 0))) {
        std::this_thread::yield();
      }
    });
    EXPECT_HERE(bool(seal_sandbox()));
    earlier.join();
    EXPECT_HERE(is_refused(::socket(AF_INET, SOCK_STREAM, 0)));
    EXPECT_HERE(is_refused(::chmod(model().c_str(), 0666)));
    EXPECT_HERE(::write(ready[1], &port, sizeof(port)) == ssize_t(sizeof(port)));
    EXPECT_HERE(::accept4(server, nullptr, nullptr, SOCK_CLOEXEC) >= 0);
    ::_exit(0);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

// Who shares a store with other machines asks it whenever it likes, and starts no program for that.
TEST_F(SandboxDeathTest, WhoMayConnectConnects) {
  const auto check = [this] {
    uint16_t port = 0;
    const int server = listening(port);
    EXPECT_HERE(bool(enter_sandbox({.readable = {model()}, .connects = true})));
    EXPECT_HERE(bool(seal_sandbox(true)));
    EXPECT_HERE(connected(port) >= 0);
    EXPECT_HERE(::accept4(server, nullptr, nullptr, SOCK_CLOEXEC) >= 0);
    EXPECT_HERE(is_refused(::listen(::socket(AF_INET, SOCK_STREAM, 0), 1)));
    EXPECT_HERE(is_refused(::execl("/bin/true", "true", nullptr)));
    EXPECT_HERE(!opens(outside(), O_RDONLY));
    EXPECT_HERE(opens("/etc/hosts", O_RDONLY));
    ::_exit(0);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

// What it looks at while it runs, and memory for compiled expressions.
TEST_F(SandboxDeathTest, TheMachineIsSeenAsBefore) {
  const auto check = [this] {
    const MachineMemory before = read_machine_memory();
    enter();
    EXPECT_HERE(read_machine_memory().total_bytes == before.total_bytes);
    EXPECT_HERE(before.total_bytes > 0);
    EXPECT_HERE(opens("/proc/self/statm", O_RDONLY));
    EXPECT_HERE(opens("/dev/null", O_RDWR));
    void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_HERE(code != MAP_FAILED);
    ::_exit(0);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

TEST(Sandbox, SupportIsAllOfItOrHasAReason) {
  const SandboxSupport support = sandbox_support();
  const bool has_all = support.landlock_version >= 2 && support.filters_calls;
  if (support.why_not.find("leaks") == std::string::npos) {
    EXPECT_EQ(support.why_not.empty(), has_all);
  }
}

}  // namespace
}  // namespace cairn::sandbox_test
