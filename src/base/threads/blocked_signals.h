// While such an object lives, the calling thread receives no signals that others send, and neither
// do threads that it starts: signals are for threads that wait for input. Those that tell of a
// fault of the thread itself, such as of a mapped file that shrank, reach their handlers: where
// they are blocked the kernel ends the process without a word. Thread rule: created and destroyed
// on one thread.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace cairn {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace cairn
