// The scales of the adapters for requests that name none, which an operator may change.
// Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/adapters.h"

namespace cairn::serve {

class AdapterScales {
 public:
  // Nothing: as the engine was loaded.
  std::optional<std::vector<AdapterUse>> get() const {
    const std::lock_guard lock(mutex_);
    return uses_;
  }
  void set(std::vector<AdapterUse> uses) {
    const std::lock_guard lock(mutex_);
    uses_ = std::move(uses);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::vector<AdapterUse>> uses_;
};

}  // namespace cairn::serve
