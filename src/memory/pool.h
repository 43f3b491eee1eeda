// The blocks of one group: pages or states. Address space is reserved once; a block is an index
// into every plane; it is counted in the ledger before it is touched and is free again when nobody
// names it. A block that is named more than once is never written.
// Not thread-safe: the engine's thread owns it; kernels write only blocks of the running step.
#pragma once

#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "base/result.h"
#include "memory/layout.h"
#include "memory/ledger.h"

namespace cairn::memory {

class Pool {
 public:
  static Result<Pool> create(const GroupSpec& spec, int32_t block_count_max, Ledger* ledger);

  // A block named once, or -1 where the ledger or the pool has no room. Its bytes are arbitrary.
  int32_t take();
  void retain(int32_t block);
  void release(int32_t block);
  bool is_shared(int32_t block) const { return counts_[size_t(block)] > 1; }

  std::byte* address(int32_t plane, int32_t block) const {
    return planes_[size_t(plane)].data() + size_t(block) * plane_bytes_[size_t(plane)];
  }
  std::byte* plane(int32_t plane_index) const { return planes_[size_t(plane_index)].data(); }
  size_t plane_block_bytes(int32_t plane) const { return plane_bytes_[size_t(plane)]; }
  int32_t plane_count() const { return int32_t(planes_.size()); }
  size_t block_bytes() const { return block_bytes_; }
  int32_t used_count() const { return used_count_; }

  // Gives the memory of free blocks back to the system.
  void trim();

 private:
  Pool() = default;

  std::vector<Arena> planes_;
  std::vector<size_t> plane_bytes_;
  std::vector<int32_t> counts_;  // Names of each block so far used.
  std::vector<int32_t> free_;
  size_t block_bytes_ = 0;
  int32_t block_count_max_ = 0;
  int32_t used_count_ = 0;
  Ledger* ledger_ = nullptr;
};

}  // namespace cairn::memory
