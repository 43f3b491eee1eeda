// Counting names of blocks and finding free ones.
#include "memory/pool.h"

#include <algorithm>
#include <cstring>

namespace cairn::memory {

Result<Pool> Pool::create(const GroupSpec& spec, int32_t block_count_max, Ledger* ledger) {
  Pool pool;
  pool.block_bytes_ = spec.block_bytes();
  pool.block_count_max_ = block_count_max;
  pool.ledger_ = ledger;
  for (const size_t bytes : spec.plane_bytes) {
    CAIRN_TRY(Arena arena, Arena::reserve(std::max<size_t>(bytes * size_t(block_count_max), 1)));
    pool.planes_.push_back(std::move(arena));
    pool.plane_bytes_.push_back(bytes);
  }
  pool.counts_.reserve(size_t(block_count_max));
  pool.free_.reserve(size_t(block_count_max));
  return pool;
}

int32_t Pool::take() {
  if (free_.empty() && int32_t(counts_.size()) == block_count_max_) return -1;
  if (!ledger_->take(block_bytes_)) return -1;
  int32_t block = 0;
  if (free_.empty()) {
    block = int32_t(counts_.size());
    counts_.push_back(1);
  } else {
    block = free_.back();
    free_.pop_back();
    counts_[size_t(block)] = 1;
  }
  ++used_count_;
  return block;
}

void Pool::retain(int32_t block) {
  DCHECK(counts_[size_t(block)] > 0);
  ++counts_[size_t(block)];
}

void Pool::release(int32_t block) {
  DCHECK(counts_[size_t(block)] > 0);
  if (--counts_[size_t(block)] > 0) return;
  ledger_->give_back(block_bytes_);
  --used_count_;
  free_.push_back(block);
#ifdef CAIRN_DEBUG_CHECKS
  // Whoever reads a freed block reads NaN.
  for (int32_t plane = 0; plane < plane_count(); ++plane) {
    std::memset(address(plane, block), 0xff, plane_bytes_[size_t(plane)]);
  }
#endif
}

void Pool::trim() {
  for (const int32_t block : free_) {
    for (int32_t plane = 0; plane < plane_count(); ++plane) {
      const size_t bytes = plane_bytes_[size_t(plane)];
      planes_[size_t(plane)].discard(size_t(block) * bytes, bytes);
    }
  }
}

}  // namespace cairn::memory
