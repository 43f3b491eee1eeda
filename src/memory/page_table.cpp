// Reference counts, page by page.
#include "memory/page_table.h"

#include <algorithm>

namespace cairn::memory {

// The copy gets the original's capacity, so that appending to it allocates no more than before.
PageTable::PageTable(const PageTable& other) : pool_(other.pool_), first_kept_(other.first_kept_) {
  pages_.reserve(other.pages_.capacity());
  pages_ = other.pages_;
  for (int32_t page = first_kept_; page < size(); ++page) {
    if (pages_[size_t(page)] != kNoPage) pool_->retain(pages_[size_t(page)]);
  }
}

PageTable::PageTable(PageTable&& other) noexcept
    : pool_(other.pool_),
      pages_(std::exchange(other.pages_, {})),
      first_kept_(std::exchange(other.first_kept_, 0)) {}

PageTable& PageTable::operator=(PageTable other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(pages_, other.pages_);
  std::swap(first_kept_, other.first_kept_);
  return *this;
}

PageTable::~PageTable() {
  truncate(0);
}

void PageTable::push(PageId page) {
  if (page == kNoPage && first_kept_ == size()) ++first_kept_;
  pages_.push_back(page);
}

void PageTable::truncate(int32_t count) {
  for (int32_t page = std::max(count, first_kept_); page < size(); ++page) {
    if (pages_[size_t(page)] != kNoPage) pool_->release(pages_[size_t(page)]);
  }
  if (count < size()) pages_.resize(size_t(count));
  first_kept_ = std::min(first_kept_, size());
}

void PageTable::drop(int32_t page) {
  PageId& entry = pages_[size_t(page)];
  if (entry != kNoPage) pool_->release(std::exchange(entry, kNoPage));
  while (first_kept_ < size() && pages_[size_t(first_kept_)] == kNoPage) ++first_kept_;
}

void PageTable::drop_before(int32_t end) {
  for (int32_t page = first_kept_; page < std::min(end, size()); ++page) drop(page);
}

PageId PageTable::exchange_back(PageId page) {
  const PageId old = std::exchange(pages_.back(), page);
  first_kept_ = std::min(first_kept_, size() - (page == kNoPage ? 0 : 1));
  return old;
}

}  // namespace cairn::memory
