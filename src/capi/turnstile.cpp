// A queue of numbers, and a thread that looks at marks.
#include "capi/turnstile.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/threads/start_thread.h"

namespace cairn::capi {

namespace {

// A signal handler can set a mark, and wake nobody.
constexpr std::chrono::milliseconds kLookAtMark(2);
// So many looks without a new turn, and the watcher sleeps until there is one.
constexpr int kIdleLooks = 50;

}  // namespace

Result<std::unique_ptr<Turnstile>> Turnstile::open() {
  std::unique_ptr<Turnstile> turns(new Turnstile());
  CAIRN_TRY(turns->thread_,
            start_thread("the watcher's thread", [made = turns.get()] { made->watch(); }));
  return turns;
}

Turnstile::~Turnstile() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    watcher_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool Turnstile::enter(User* user) {
  std::unique_lock lock(mutex_);
  if (is_taken_ || !waiting_.empty()) {
    const uint64_t mine = ++number_;
    waiting_.push_back(mine);
    const auto is_next = [&] { return !is_taken_ && waiting_.front() == mine; };
    while (!changed_.wait_for(lock, kLookAtMark, is_next)) {
      if (user == nullptr || !user->is_cancelled()) continue;
      std::erase(waiting_, mine);
      changed_.notify_all();
      return false;
    }
    waiting_.erase(waiting_.begin());
  }
  is_taken_ = true;
  user_ = user;
  ++entered_count_;
  if (is_watcher_asleep_) watcher_.notify_all();
  return true;
}

void Turnstile::leave() noexcept {
  std::unique_lock lock(mutex_);
  user_ = nullptr;
  while (!discarded_.empty()) {
    std::vector<std::shared_ptr<const void>> items;
    items.swap(discarded_);
    lock.unlock();
    items.clear();
    lock.lock();
  }
  is_taken_ = false;
  if (!waiting_.empty()) changed_.notify_all();
}

void Turnstile::discard(std::shared_ptr<const void> item) {
  {
    const std::lock_guard lock(mutex_);
    discarded_.push_back(std::move(item));
    if (is_taken_ || !waiting_.empty()) return;
    is_taken_ = true;
  }
  leave();
}

void Turnstile::watch() {
  std::unique_lock lock(mutex_);
  uint64_t seen = 0;
  int idle_looks = 0;
  while (!is_stopping_) {
    if (user_ != nullptr && user_->is_cancelled()) user_->end_soon();
    idle_looks = is_taken_ || entered_count_ != seen ? 0 : idle_looks + 1;
    seen = entered_count_;
    if (idle_looks < kIdleLooks) {
      watcher_.wait_for(lock, kLookAtMark, [&] { return is_stopping_; });
      continue;
    }
    is_watcher_asleep_ = true;
    watcher_.wait(lock, [&] { return is_stopping_ || entered_count_ != seen; });
    is_watcher_asleep_ = false;
  }
}

}  // namespace cairn::capi
