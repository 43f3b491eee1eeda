// Ctrl-C while an answer is made: the first one asks to stop, a second one before that has happened
// ends the program with exit code 130.
// Thread rule: one guard at a time; interrupted() from any thread.
#pragma once

#include <csignal>

namespace cairn::terminal {

class InterruptGuard {
 public:
  InterruptGuard();   // From now on SIGINT only sets the flag, which starts clear.
  ~InterruptGuard();  // What SIGINT did before.
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_;
};

bool interrupted();

}  // namespace cairn::terminal
