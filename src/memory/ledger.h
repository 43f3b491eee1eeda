// The byte budget of everything that a memory keeps: bytes are counted before they are touched.
// take() refuses what exceeds the budget; the caller decides what follows. Of the blocks that are
// used it also has what each tenant holds. Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

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

  // A block is used by a tenant from now on, until it is returned to the account that this gives.
  // Accounts stay.
  int32_t charge(uint64_t tenant, size_t bytes) {
    const auto [found, is_new] = accounts_.try_emplace(tenant, int32_t(used_bytes_.size()));
    if (is_new) used_bytes_.push_back(0);
    used_bytes_[size_t(found->second)] += bytes;
    return found->second;
  }
  void discharge(int32_t account, size_t bytes) {
    DCHECK(bytes <= used_bytes_[size_t(account)]);
    used_bytes_[size_t(account)] -= bytes;
  }
  // -1: none.
  int32_t account_of(uint64_t tenant) const {
    const auto found = accounts_.find(tenant);
    return found == accounts_.end() ? -1 : found->second;
  }
  // By account.
  const std::vector<size_t>& used_bytes() const { return used_bytes_; }

 private:
  size_t budget_bytes_;
  size_t held_bytes_ = 0;                           // At most budget_bytes_.
  std::unordered_map<uint64_t, int32_t> accounts_;  // By tenant.
  std::vector<size_t> used_bytes_;
};

}  // namespace cairn::memory
