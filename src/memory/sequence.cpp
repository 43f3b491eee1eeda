// Counted names of blocks.
#include "memory/sequence.h"

#include <utility>

namespace cairn::memory {

BlockRefs::BlockRefs(const BlockRefs& other) : pool_(other.pool_), blocks_(other.blocks_) {
  for (const int32_t block : blocks_) pool_->retain(block);
}

BlockRefs::BlockRefs(BlockRefs&& other) noexcept
    : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})) {}

BlockRefs& BlockRefs::operator=(BlockRefs other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(blocks_, other.blocks_);
  return *this;
}

BlockRefs::~BlockRefs() {
  truncate(0);
}

void BlockRefs::truncate(size_t count) {
  while (blocks_.size() > count) {
    pool_->release(blocks_.back());
    blocks_.pop_back();
  }
}

int32_t BlockRefs::exchange_last(int32_t block) {
  return std::exchange(blocks_.back(), block);
}

}  // namespace cairn::memory
