// What requests leave behind for later ones, by ids: so many bytes of it, then what was asked for
// longest ago is forgotten, and so is what is too old. Only whose it is finds it. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "serve/http/message.h"

namespace cairn::serve {

// Says in a reply's head that this server keeps what later requests name by `id`, so that a proxy
// asks this one for it.
inline http::Header kept_header(std::string id) {
  return {"x-cairn-kept", std::move(id)};
}

template <class T>
class KeptTable {
 public:
  using Clock = std::chrono::steady_clock;
  using Value = std::shared_ptr<const T>;

  explicit KeptTable(size_t bytes_max, Clock::duration age_max = Clock::duration::max())
      : bytes_max_(bytes_max), age_max_(age_max) {}

  // `bytes`: of the value. One that is larger than the table is not kept.
  void add(const std::string& id, const std::string& owner, Value value, size_t bytes) {
    bytes += sizeof(Entry) + id.size() + owner.size();
    if (bytes > bytes_max_) return;
    const std::lock_guard lock(mutex_);
    while (bytes_ + bytes > bytes_max_) remove(entries_.find(by_use_.begin()->second));
    entries_[id] = {.owner = owner,
                    .value = std::move(value),
                    .bytes = bytes,
                    .last_use = ++uses_,
                    .made = Clock::now()};
    by_use_[uses_] = id;
    bytes_ += bytes;
  }
  // Null where there is none of this id, or it is another's.
  Value find(const std::string& id, const std::string& owner) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.owner != owner) return nullptr;
    if (Clock::now() - found->second.made > age_max_) {
      remove(found);
      return nullptr;
    }
    by_use_.erase(found->second.last_use);
    found->second.last_use = ++uses_;
    by_use_[uses_] = id;
    return found->second.value;
  }
  // Whether there was one of this id that is not another's.
  bool remove(const std::string& id, const std::string& owner) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.owner != owner) return false;
    remove(found);
    return true;
  }

 private:
  struct Entry {
    std::string owner;
    Value value;
    size_t bytes = 0;
    int64_t last_use = 0;
    Clock::time_point made;
  };

  void remove(typename std::map<std::string, Entry>::iterator entry) {
    bytes_ -= entry->second.bytes;
    by_use_.erase(entry->second.last_use);
    entries_.erase(entry);
  }

  const size_t bytes_max_;
  const Clock::duration age_max_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::map<int64_t, std::string> by_use_;  // Their ids.
  size_t bytes_ = 0;
  int64_t uses_ = 0;
};

}  // namespace cairn::serve
