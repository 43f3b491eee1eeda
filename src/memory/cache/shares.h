// Shares of the budget: what a tenant holds is not evicted for others as long as it is within its
// share, so that whoever floods memory drives out what is his own. What is in use counts first, the
// entries of the cache after it. Only counts; eviction.h takes. Not thread-safe.
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

  // Of so many bytes, for each of these tenants; others have none. Of fewer than two tenants, or of
  // 0 bytes: there are none at all, and everybody may take everything.
  void set(std::vector<uint64_t> tenants, size_t bytes);
  bool are_set() const { return !tenants_.empty(); }

  // Whether the tenant holds more than its share, or would with so many bytes more.
  bool is_above(uint64_t tenant, size_t more_bytes = 0) const;
  // What is above its share; 0: nothing.
  size_t excess(uint64_t tenant) const;

  // Of what would be free without the entries that are counted here: what can be evicted for a
  // tenant while the others keep what they hold within their shares.
  size_t evictable_bytes(uint64_t tenant, const BlockCounts& entries) const;
  // Whether more could be evicted of the tenant for others if more of what it holds were counted
  // here: it is above its share by more than the entries have.
  bool would_give_more(uint64_t tenant, const BlockCounts& entries) const;
  // Of so many bytes, of which all have a part, what one may hold.
  size_t part_of(size_t bytes) const;

 private:
  // Of the bytes of the ledger's accounts, those of this tenant's.
  size_t bytes_of(uint64_t tenant, std::span<const size_t> by_account) const;
  size_t used_bytes(uint64_t tenant) const;
  size_t share_of(uint64_t tenant) const;

  const Memory* memory_;
  std::vector<uint64_t> tenants_;  // Ascending; those that have a share.
  size_t bytes_ = 0;
};

}  // namespace cairn::memory
