// The byte budget of everything that a memory keeps: bytes are counted before they are touched.
// take() refuses what exceeds the budget; the caller decides what follows. Not thread-safe: the
// engine's thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace cairn::memory {

class Ledger {
 public:
  explicit Ledger(size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  bool take(size_t bytes) {
    if (bytes > free_bytes()) return false;
    held_bytes_ += bytes;
    return true;
  }
  void give_back(size_t bytes) {
    CHECK(bytes <= held_bytes_);
    held_bytes_ -= bytes;
  }
  size_t held_bytes() const { return held_bytes_; }
  size_t free_bytes() const { return budget_bytes_ - held_bytes_; }
  size_t budget_bytes() const { return budget_bytes_; }

 private:
  size_t budget_bytes_;
  size_t held_bytes_ = 0;  // At most budget_bytes_.
};

}  // namespace cairn::memory
