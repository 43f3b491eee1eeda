// The share of the memory budget that each tenant keeps: what a tenant holds within its share is
// not evicted for other tenants, so a tenant that floods memory evicts only its own. A tenant holds
// the pages and states that its sequences use, then those that the cache keeps for it. This class
// only counts; eviction.h chooses what goes. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/cache/block_counts.h"
#include "memory/memory.h"

namespace cairn::memory {

class Shares {
 public:
  explicit Shares(const Memory* memory) : memory_(memory) {}

  // Each of these tenants keeps `bytes`; other tenants keep nothing. With fewer than two tenants,
  // or 0 bytes, there are no shares, and anything may be evicted for anybody.
  void set(std::vector<uint64_t> tenants, size_t bytes);
  bool are_set() const { return !tenants_.empty(); }

  // Whether the tenant holds more than its share, or would hold more with `more_bytes` added.
  bool is_above(uint64_t tenant, size_t more_bytes = 0) const;
  // Bytes that the tenant holds above its share; 0 if it is within.
  size_t excess(uint64_t tenant) const;

  // Bytes that can be evicted for this tenant while all others keep what they hold within their
  // shares. `entries`: what each tenant's evictable cache entries hold.
  size_t evictable_bytes(uint64_t tenant, const BlockCounts& entries) const;
  // Whether more could be evicted for others if this tenant's sequences in use became cache
  // entries: it is above its share by more than its entries hold.
  bool would_give_more(uint64_t tenant, const BlockCounts& entries) const;
  // A tenant's even part of `bytes`, at most its share; all of them where there are no shares.
  size_t part_of(size_t bytes) const;

 private:
  // The tenant's entry of bytes by account of the ledger.
  size_t bytes_of(uint64_t tenant, std::span<const size_t> by_account) const;
  size_t used_bytes(uint64_t tenant) const;
  size_t share_of(uint64_t tenant) const;

  const Memory* memory_;
  std::vector<uint64_t> tenants_;  // Ascending; those that have a share.
  size_t bytes_ = 0;
};

}  // namespace cairn::memory
