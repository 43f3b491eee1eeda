// How many requests may be answered at a time, in all and for each client. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace cairn::serve {

class Slots : public std::enable_shared_from_this<Slots> {
 public:
  Slots(int32_t all_max, int32_t client_max) : all_max_(all_max), client_max_(client_max) {}

  // Held as long as the request is answered.
  class Slot {
   public:
    Slot(std::shared_ptr<Slots> slots, std::string client)
        : slots_(std::move(slots)), client_(std::move(client)) {}
    ~Slot() { slots_->release(client_); }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

   private:
    std::shared_ptr<Slots> slots_;
    std::string client_;
  };

  // Null where there are too many. Half of all is kept for those of `client_count` clients that
  // have none, one for each.
  std::unique_ptr<Slot> take(const std::string& client, int32_t client_count = 0) {
    const std::lock_guard lock(mutex_);
    const bool has_one = counts_.contains(client);
    const int32_t absent = std::max(client_count - int32_t(counts_.size()), 0);
    const int32_t kept = has_one ? std::min(absent, all_max_ / 2) : 0;
    if (all_count_ + kept >= all_max_) return nullptr;
    int32_t& count = counts_[client];
    if (count >= client_max_) return nullptr;
    ++count;
    ++all_count_;
    return std::make_unique<Slot>(shared_from_this(), client);
  }
  int32_t all_max() const { return all_max_; }
  int32_t count() const {
    const std::lock_guard lock(mutex_);
    return all_count_;
  }
  int32_t client_max() const { return client_max_; }
  int32_t count(const std::string& client) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(client);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  void release(const std::string& client) {
    const std::lock_guard lock(mutex_);
    --all_count_;
    const auto found = counts_.find(client);
    if (--found->second == 0) counts_.erase(found);
  }

  const int32_t all_max_, client_max_;
  mutable std::mutex mutex_;
  int32_t all_count_ = 0;
  std::map<std::string, int32_t> counts_;
};

}  // namespace cairn::serve
