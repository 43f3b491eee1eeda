// The flag that a signal handler may touch, and its handler.
#include "terminal/interrupt.h"

#include <unistd.h>

#include <atomic>

#include "base/output_file.h"

namespace cairn::terminal {

namespace {

// A handler can reach nothing but static storage; a lock-free atomic is all that it may use there.
std::atomic<bool>& flag() {
  static std::atomic<bool> is_interrupted{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
  return is_interrupted;
}

void on_interrupt(int /*signal*/) {
  if (!flag().exchange(true)) return;
  remove_unfinished_outputs();
  _exit(128 + SIGINT);  // As shells count it.
}

}  // namespace

InterruptGuard::InterruptGuard() {
  flag().store(false);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &before_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_, nullptr);
}

bool interrupted() {
  return flag().load();
}

}  // namespace cairn::terminal
