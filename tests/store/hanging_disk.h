// For tests: a disk whose writes end when they are let.
#pragma once

#include <condition_variable>
#include <mutex>

#include "store/file_calls.h"

namespace cairn::test {

class HangingDisk : public store::FileCalls {
 public:
  ssize_t write_at(int file, const void* bytes, size_t count, off_t offset) override {
    std::unique_lock lock(mutex_);
    ++waiting_count_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !hangs_; });
    return FileCalls::write_at(file, bytes, count, offset);
  }
  void hang() {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
    waiting_count_ = 0;
  }
  void wait_until_hanging() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_count_ > 0; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    hangs_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  int waiting_count_ = 0;
};

}  // namespace cairn::test
