// Shares of a budget of bytes: what a tenant has within its share is not dropped for others, so
// that whoever floods it drives out what is his own. Knows the shares alone, not who has what; as
// long as more than the budget is held, somebody is above a share. Not thread-safe: its owner
// locks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace cairn::memory {

class EvenShares {
 public:
  // Of so many bytes, for each of these tenants so many parts of an even share; others have none.
  // Of fewer than two tenants there are none at all, and everybody may take everything.
  void set(std::vector<uint64_t> tenants, double part, uint64_t bytes) {
    tenants_ = std::move(tenants);
    std::ranges::sort(tenants_);
    if (tenants_.size() < 2) tenants_.clear();
    bytes_ = tenants_.empty() ? 0 : uint64_t(double(bytes) * part / double(tenants_.size()));
  }
  // Whether a tenant that has so many bytes has more than its share.
  bool is_above(uint64_t tenant, uint64_t held_bytes) const {
    return !std::ranges::binary_search(tenants_, tenant) || held_bytes > bytes_;
  }

 private:
  std::vector<uint64_t> tenants_;  // Ascending; those that have a share.
  uint64_t bytes_ = 0;
};

}  // namespace cairn::memory
