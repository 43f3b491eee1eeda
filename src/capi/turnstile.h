// One call at a time computes on a runtime, in the order in which they came, each on the caller's
// thread. A watcher sees cancellations, which signal handlers can only mark, and tells who
// computes. What is discarded is destroyed by who has the turn. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"

namespace cairn::capi {

class Turnstile {
 public:
  // Who has a turn; these are called by other threads.
  class User {
   public:
    virtual bool is_cancelled() const = 0;
    virtual void end_soon() = 0;  // May come too early or late; it comes again.

   protected:
    ~User() = default;
  };

  // Starts the watcher, which sleeps while nobody has turns. Errors: io: the system gives no
  // thread.
  static Result<std::unique_ptr<Turnstile>> open();
  ~Turnstile();
  Turnstile(const Turnstile&) = delete;
  Turnstile& operator=(const Turnstile&) = delete;

  // Waits for the turn; false: the user was cancelled meanwhile. Null: nobody can cancel it.
  bool enter(User* user);
  void leave() noexcept;
  // Destroys it in a turn, now or soon. Throws where there is no memory.
  void discard(std::shared_ptr<const void> item);

 private:
  Turnstile() = default;
  void watch();

  std::mutex mutex_;
  std::condition_variable changed_, watcher_;
  std::vector<uint64_t> waiting_;  // In the order in which they came.
  uint64_t entered_count_ = 0, number_ = 0;
  bool is_taken_ = false;
  User* user_ = nullptr;
  std::vector<std::shared_ptr<const void>> discarded_;
  bool is_watcher_asleep_ = false, is_stopping_ = false;
  std::thread thread_;
};

// A turn, as long as it lives.
class Turn {
 public:
  explicit Turn(Turnstile* turns, Turnstile::User* user = nullptr)
      : turns_(turns), is_mine_(turns->enter(user)) {}
  ~Turn() {
    if (is_mine_) turns_->leave();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  explicit operator bool() const { return is_mine_; }

 private:
  Turnstile* turns_;
  bool is_mine_;
};

}  // namespace cairn::capi
