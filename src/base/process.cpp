// System calls; a refusal of one of them leaves the program as able as it was, so it is not told.
#include "base/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "base/output_file.h"
#include "base/quantities.h"

namespace cairn {
namespace {

constexpr int kExitCode = 1;

// A program that core files are piped to gets them whatever the limit is, unless it is one byte.
void forbid_core_files() {
  const struct rlimit none = {1, 1};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// Opened the wrong way round, so that reading and writing fail as they would on a closed stream.
void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

std::string memory_text() {
  struct rusage usage = {};
  struct rlimit limit = {};
  (void)::getrusage(RUSAGE_SELF, &usage);
  const bool is_limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return fmt::format("not enough memory: {} were in use, and {} gives no more",
                     show_bytes(uint64_t(usage.ru_maxrss) * 1024),
                     is_limited
                         ? fmt::format("the process's limit of {}", show_bytes(limit.rlim_cur))
                         : "the system");
}

[[noreturn]] void on_terminate() {
  remove_unfinished_outputs();
  const std::string text =
      std::current_exception() ? exception_text() : "terminated without an exception";
  std::fprintf(stderr, "cairn: %s\n", text.c_str());
  std::_Exit(kExitCode);
}

}  // namespace

void forbid_process() {
  reserve_standard_streams();
  forbid_core_files();
  (void)::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  (void)shared_file_mask();
  std::signal(SIGXFSZ, SIG_IGN);
}

mode_t shared_file_mask() {
  static const mode_t mask = ::umask(077);
  return mask;
}

std::string exception_text() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    return memory_text();
  } catch (const std::length_error&) {
    return memory_text();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of an unknown kind";
  }
}

void install_last_catch() {
  std::set_terminate(on_terminate);
}

}  // namespace cairn
