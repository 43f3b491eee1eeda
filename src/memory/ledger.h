// The byte budget of everything a memory keeps: counted before it is touched. No room is an answer,
// not an error. Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstddef>

#include "base/check.h"

namespace cairn::memory {

class Ledger {
 public:
  explicit Ledger(size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  bool take(size_t bytes) {
    if (bytes > budget_bytes_ - used_bytes_) return false;
    used_bytes_ += bytes;
    return true;
  }
  void give_back(size_t bytes) {
    CHECK(bytes <= used_bytes_);
    used_bytes_ -= bytes;
  }
  size_t used_bytes() const { return used_bytes_; }
  size_t budget_bytes() const { return budget_bytes_; }

 private:
  size_t budget_bytes_;
  size_t used_bytes_ = 0;  // At most budget_bytes_.
};

}  // namespace cairn::memory
