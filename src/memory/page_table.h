// Counted references to blocks: to one (BlockRef), or to consecutive pages with holes where nothing
// is kept (PageTable). Copies increment the reference counts, destructors decrement them; no bytes
// are copied. Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "device/step.h"
#include "memory/pool.h"

namespace cairn::memory {

class BlockRef {
 public:
  BlockRef() = default;
  // Takes over the caller's reference.
  BlockRef(Pool* pool, PageId block) : pool_(pool), block_(block) {}
  BlockRef(const BlockRef& other) : pool_(other.pool_), block_(other.block_) {
    if (block_ != kNoPage) pool_->retain(block_);
  }
  BlockRef(BlockRef&& other) noexcept
      : pool_(other.pool_), block_(std::exchange(other.block_, kNoPage)) {}
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockRef() { reset(); }

  void reset() {
    if (block_ != kNoPage) pool_->release(std::exchange(block_, kNoPage));
  }
  explicit operator bool() const { return block_ != kNoPage; }
  PageId block() const { return block_; }
  std::byte* address() const { return block_ == kNoPage ? nullptr : pool_->address(block_); }
  // This one and all others; 0 where there is no block.
  int32_t ref_count() const { return block_ == kNoPage ? 0 : pool_->ref_count(block_); }

 private:
  Pool* pool_ = nullptr;
  PageId block_ = kNoPage;
};

class PageTable {
 public:
  explicit PageTable(Pool* pool) : pool_(pool) {}  // Null: a group without pages.
  PageTable(const PageTable& other);
  PageTable(PageTable&& other) noexcept;
  PageTable& operator=(PageTable other) noexcept;
  ~PageTable();

  int32_t size() const { return int32_t(pages_.size()); }
  PageId operator[](int32_t page) const { return pages_[size_t(page)]; }
  PageId back() const { return pages_.back(); }
  const PageId* data() const { return pages_.data(); }
  std::span<const PageId> pages() const { return pages_; }
  // All pages before this one are holes.
  int32_t first_kept() const { return first_kept_; }

  void reserve(size_t count) { pages_.reserve(count); }
  void push(PageId page);         // Takes over the caller's reference; kNoPage is a hole.
  void truncate(int32_t count);   // Releases all after the first `count`.
  void drop(int32_t page);        // Makes a hole.
  void drop_before(int32_t end);  // Makes holes of all pages before `end`.
  // Puts `page` in place of the last one, whose reference passes to the caller.
  PageId exchange_back(PageId page);

 private:
  Pool* pool_;
  std::vector<PageId> pages_;
  int32_t first_kept_ = 0;
};

}  // namespace cairn::memory
