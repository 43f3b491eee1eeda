// Two forks. A child sends its parent the signal that it was made with, but a program that is
// started becomes a usual child again (execve(2)); so the first child, made with none, starts the
// program as its own child and ends. Whoever takes orphans has the program then. All that happens
// between fork and execve is system calls on what was made ready before.
#include "runtimes/worker/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/threads/blocked_signals.h"

namespace cairn::runtimes {

namespace {

constexpr int kFirstGiven = 3;
constexpr int kExecMs = 10000;  // The longest that execve is waited for.

// What the program is, or why there is none: sent once.
struct Birth {
  pid_t process = -1;
  int error = 0;
};

struct Plan {
  const char* program;
  char* const* arguments;
  std::vector<int> descriptors;  // Become 0, 1, 2 and those given, all above that now.
  int births;                    // Where Birth is written,
  int leave;                     // and from where comes the word that the first child may end.
};

// As fork(), but for the signal at the child's end and what the C library has its users do.
pid_t raw_fork(unsigned long end_signal) {
  return pid_t(::syscall(SYS_clone, end_signal, nullptr, nullptr, nullptr, nullptr));
}

// Whatever else happens at the end of a process is the host's, such as writing what is buffered.
[[noreturn]] void leave(int code) {
  for (;;) ::syscall(SYS_exit_group, code);
}

void say(const Plan& plan, Birth birth) {
  while (::write(plan.births, &birth, sizeof birth) < 0 && errno == EINTR) {
  }
}

void reset_signals() {
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &usual, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// Those that the program does not get are closed by execve: they are marked so, since the one for
// errors is needed until then.
void mark_rest(int first) {
  if (::close_range(unsigned(first), ~0u, CLOSE_RANGE_CLOEXEC) == 0) return;
  const long count = ::sysconf(_SC_OPEN_MAX);
  for (int number = first; number < count; ++number) ::fcntl(number, F_SETFD, FD_CLOEXEC);
}

[[noreturn]] void become_program(const Plan& plan) {
  ::setsid();
  const int count = int(plan.descriptors.size());
  for (int number = 0; number < count; ++number) {
    if (::dup2(plan.descriptors[size_t(number)], number) < 0) {
      say(plan, {.error = errno});
      leave(127);
    }
  }
  mark_rest(count);
  reset_signals();
  ::execv(plan.program, plan.arguments);
  say(plan, {.error = errno});
  leave(127);
}

// The first child. It does not wait for the program, so that the number stays the program's until
// cairn has a descriptor for it.
[[noreturn]] void start_and_leave(const Plan& plan) {
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, nullptr);
  const pid_t process = raw_fork(SIGCHLD);
  if (process == 0) become_program(plan);
  say(plan, {.process = process, .error = process < 0 ? errno : 0});
  char none = 0;
  while (::read(plan.leave, &none, 1) < 0 && errno == EINTR) {
  }
  leave(0);
}

struct Pipe {
  Descriptor read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(ErrorCode::io, "cannot make a pipe: {}", std::strerror(errno));
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// Above all numbers that the program will have, so that none is overwritten before it is used.
Result<Descriptor> lifted(int number, int above) {
  Descriptor copy(::fcntl(number, F_DUPFD_CLOEXEC, above));
  if (copy) return copy;
  return fail(ErrorCode::io, "cannot copy a descriptor: {}", std::strerror(errno));
}

// False at the end, and where nothing comes for so long: a process that was forked off elsewhere
// meanwhile may hold the other end. How the program fares is seen by its owner then.
bool read_birth(int from, int wait_ms, Birth& birth) {
  pollfd readable{.fd = from, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&readable, 1, wait_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return false;
  ssize_t count = 0;
  do {
    count = ::read(from, &birth, sizeof birth);
  } while (count < 0 && errno == EINTR);
  return count == ssize_t(sizeof birth);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::string& program,
                                         std::span<const std::string> arguments,
                                         std::span<const int> descriptors) {
  CAIRN_TRY(Pipe output, make_pipe());
  CAIRN_TRY(Pipe births, make_pipe());
  CAIRN_TRY(Pipe leave, make_pipe());
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail(ErrorCode::io, "/dev/null: {}", std::strerror(errno));
  std::vector<int> wanted = {null.number(), output.write.number(), output.write.number()};
  wanted.insert(wanted.end(), descriptors.begin(), descriptors.end());
  const int above = kFirstGiven + int(descriptors.size());
  std::vector<Descriptor> copies;
  for (int& number : wanted) {
    CAIRN_TRY(Descriptor copy, lifted(number, above));
    number = copy.number();
    copies.push_back(std::move(copy));
  }
  CAIRN_TRY(Descriptor births_copy, lifted(births.write.number(), above));
  std::vector<char*> texts = {const_cast<char*>(program.c_str())};
  for (const std::string& each : arguments) texts.push_back(const_cast<char*>(each.c_str()));
  texts.push_back(nullptr);
  const Plan plan{.program = program.c_str(),
                  .arguments = texts.data(),
                  .descriptors = std::move(wanted),
                  .births = births_copy.number(),
                  .leave = leave.read.number()};

  // What it says is dropped where nobody reads it, and never makes it wait.
  ::fcntl(output.read.number(), F_SETFL, O_NONBLOCK);
  ::fcntl(output.write.number(), F_SETFL, O_NONBLOCK);
  pid_t first = -1;
  {
    const BlockedSignals no_handlers;
    first = raw_fork(0);
    if (first == 0) {
      ::close(leave.write.number());
      start_and_leave(plan);
    }
  }
  if (first < 0) return fail(ErrorCode::io, "cannot start a process: {}", std::strerror(errno));
  births.write = {};
  births_copy = {};
  ChildProcess made;
  made.owner_ = ::getpid();
  made.output_ = std::move(output.read);
  // One of the first child's and, where execve fails, one of the second's, in any order.
  Birth birth;
  int error = 0;
  while (read_birth(births.read.number(), made.process_ ? kExecMs : -1, birth)) {
    if (birth.error != 0) error = birth.error;
    if (birth.process < 0) continue;
    made.process_ = Descriptor(int(::syscall(SYS_pidfd_open, birth.process, 0)));
    made.group_ = birth.process;
    if (!made.process_ && error == 0) error = errno;
    (void)!::write(leave.write.number(), "", 1);
  }
  if (!made.process_ && error == 0) error = ECHILD;
  leave.write = {};
  int status = 0;
  while (::waitpid(first, &status, __WALL) < 0 && errno == EINTR) {
  }
  if (error == 0) return made;
  return fail(ErrorCode::io, "{}: cannot be started: {}", program, std::strerror(error));
}

bool ChildProcess::is_owned_here() const {
  return ::getpid() == owner_;
}

// Where whoever is around cairn takes orphans himself, as the first process of a container does,
// the program is his now, and is not left to him as one that has ended.
void ChildProcess::kill() {
  if (!process_ || !is_owned_here()) return;
  pollfd ended_already{.fd = process_.number(), .events = POLLIN, .revents = 0};
  if (::poll(&ended_already, 1, 0) == 0) ::kill(-group_, SIGKILL);  // So the number is its own.
  siginfo_t ended = {};
  ::waitid(P_PIDFD, id_t(process_.number()), &ended, WEXITED | __WALL);
  process_ = {};
}

}  // namespace cairn::runtimes
