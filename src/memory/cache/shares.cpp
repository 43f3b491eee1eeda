// What tenants hold, against their shares.
#include "memory/cache/shares.h"

#include <algorithm>
#include <utility>

namespace cairn::memory {

void Shares::set(std::vector<uint64_t> tenants, size_t bytes) {
  tenants_ = std::move(tenants);
  std::sort(tenants_.begin(), tenants_.end());
  tenants_.erase(std::unique(tenants_.begin(), tenants_.end()), tenants_.end());
  bytes_ = bytes;
  if (tenants_.size() < 2 || bytes == 0) tenants_.clear();
}

size_t Shares::bytes_of(uint64_t tenant, std::span<const size_t> by_account) const {
  const int32_t account = memory_->ledger().account_of(tenant);
  return account < 0 || size_t(account) >= by_account.size() ? 0 : by_account[size_t(account)];
}

size_t Shares::used_bytes(uint64_t tenant) const {
  return bytes_of(tenant, memory_->ledger().used_bytes());
}

size_t Shares::share_of(uint64_t tenant) const {
  return std::binary_search(tenants_.begin(), tenants_.end(), tenant) ? bytes_ : 0;
}

bool Shares::is_above(uint64_t tenant, size_t more_bytes) const {
  return used_bytes(tenant) + more_bytes > share_of(tenant);
}

size_t Shares::excess(uint64_t tenant) const {
  const size_t used = used_bytes(tenant);
  return used - std::min(used, share_of(tenant));
}

// Tenants have no block in common.
size_t Shares::evictable_bytes(uint64_t tenant, const BlockCounts& entries) const {
  const Ledger& ledger = memory_->ledger();
  std::vector<size_t> bytes = entries.exclusive_bytes_by_account();
  for (const uint64_t other : tenants_) {
    const int32_t account = ledger.account_of(other);
    if (other == tenant || account < 0 || size_t(account) >= bytes.size()) continue;
    size_t& evictable = bytes[size_t(account)];
    evictable = std::min(evictable, excess(other));
  }
  size_t sum = 0;
  for (const size_t of_account : bytes) sum += of_account;
  return sum;
}

bool Shares::would_give_more(uint64_t tenant, const BlockCounts& entries) const {
  const size_t above = excess(tenant);
  return above > 0 && bytes_of(tenant, entries.exclusive_bytes_by_account()) < above;
}

size_t Shares::part_of(size_t bytes) const {
  return are_set() ? std::min(bytes / tenants_.size(), bytes_) : bytes;
}

}  // namespace cairn::memory
