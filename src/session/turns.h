// Several engines of one process compute in turn, a step at a time: each has threads for all cores,
// and two that compute at once would wait for each other at every barrier. Who asked first has the
// next turn. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace cairn::session {

class Turns {
 public:
  // Waits for one's turn (BasicLockable, so that std::unique_lock holds it).
  void lock() {
    std::unique_lock lock(mutex_);
    const uint64_t mine = asked_++;
    next_.wait(lock, [&] { return given_ == mine; });
  }
  void unlock() {
    const std::lock_guard lock(mutex_);
    ++given_;
    next_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable next_;
  uint64_t asked_ = 0, given_ = 0;
};

}  // namespace cairn::session
