// One count for each block, by group.
#include "memory/cache/block_counts.h"

#include <algorithm>

namespace cairn::memory {

void BlockCounts::add(const Sequence& sequence) {
  change(sequence, 1);
}

void BlockCounts::remove(const Sequence& sequence) {
  change(sequence, -1);
}

void BlockCounts::add_anchors(const Sequence& sequence) {
  change_anchors(sequence, 1);
}

void BlockCounts::remove_anchors(const Sequence& sequence) {
  change_anchors(sequence, -1);
}

int32_t BlockCounts::count(int32_t group, PageId block) const {
  if (size_t(group) >= counts_.size()) return 0;
  const std::vector<int32_t>& counts = counts_[size_t(group)];
  return size_t(index_of(block)) < counts.size() ? counts[size_t(index_of(block))] : 0;
}

size_t BlockCounts::exclusive_bytes(size_t enough) const {
  size_t bytes = 0;
  for (size_t group = 0; group < counts_.size(); ++group) {
    const Pool& pool = store_->pool(int32_t(group));
    const size_t block_bytes = store_->spec(int32_t(group)).block_bytes;
    for (size_t block = 0; block < counts_[group].size() && bytes < enough; ++block) {
      const int32_t count = counts_[group][block];
      if (count > 0 && count == pool.ref_count(PageId(block))) bytes += block_bytes;
    }
  }
  return bytes;
}

std::vector<size_t> BlockCounts::exclusive_bytes_by_account() const {
  if (store_ == nullptr) return {};
  std::vector<size_t> bytes(store_->ledger().used_bytes().size(), 0);
  for (size_t group = 0; group < counts_.size(); ++group) {
    const Pool& pool = store_->pool(int32_t(group));
    const size_t block_bytes = store_->spec(int32_t(group)).block_bytes;
    for (size_t block = 0; block < counts_[group].size(); ++block) {
      const int32_t count = counts_[group][block];
      const bool is_exclusive = count > 0 && count == pool.ref_count(PageId(block));
      if (is_exclusive) bytes[size_t(pool.account(PageId(block)))] += block_bytes;
    }
  }
  return bytes;
}

void BlockCounts::change(int32_t group, PageId block, int32_t by) {
  std::vector<int32_t>& counts = counts_[size_t(group)];
  const size_t index = size_t(index_of(block));
  if (index >= counts.size()) counts.resize(std::max(index + 1, 2 * counts.size()));
  int32_t& count = counts[index];
  const size_t block_bytes = store_->spec(group).block_bytes;
  if (count == 0) held_bytes_ += block_bytes;
  count += by;
  DCHECK(count >= 0);
  if (count == 0) held_bytes_ -= block_bytes;
}

void BlockCounts::change(const Sequence& sequence, int32_t by) {
  change_anchors(sequence, by);
  const Layout& layout = store_->layout();
  if (sequence.state_) change(layout.recurrent_group, sequence.state_.block(), by);
  if (sequence.hidden_) change(layout.hidden_group, sequence.hidden_.block(), by);
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    if (!store_->spec(group).has_pages()) continue;
    const PageTable& table = sequence.tables_[size_t(group)];
    for (int32_t page = table.first_kept(); page < table.size(); ++page) {
      if (table[page] != kNoPage) change(group, table[page], by);
    }
  }
}

void BlockCounts::change_anchors(const Sequence& sequence, int32_t by) {
  store_ = sequence.store_;
  counts_.resize(size_t(store_->group_count()));
  const Layout& layout = store_->layout();
  for (const Anchor& anchor : sequence.anchors_) {
    if (anchor.state) change(layout.recurrent_group, anchor.state.block(), by);
    if (anchor.hidden) change(layout.hidden_group, anchor.hidden.block(), by);
  }
}

}  // namespace cairn::memory
