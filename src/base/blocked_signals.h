// While such an object lives, the calling thread receives no signals, and neither do threads that
// it starts: signals are for threads that wait for input. Thread rule: created and destroyed on one
// thread.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace cairn {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace cairn
