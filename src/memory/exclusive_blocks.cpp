// Sorts the references, so that those to one block are neighbours.
#include "memory/exclusive_blocks.h"

#include <algorithm>

namespace cairn::memory {

void ExclusiveBlocks::add(int32_t group, const BlockRef& block) {
  if (block) refs_.push_back({group, block.block()});
}

void ExclusiveBlocks::add(const Sequence& sequence) {
  add_anchors(sequence);
  add(store_->layout().recurrent_group, sequence.state_);
  add(store_->layout().hidden_group, sequence.hidden_);
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    if (!store_->spec(group).has_pages()) continue;
    for (const PageId page : sequence.tables_[size_t(group)].pages()) {
      if (page != kNoPage) refs_.push_back({group, page});
    }
  }
}

void ExclusiveBlocks::add_anchors(const Sequence& sequence) {
  store_ = sequence.store_;
  for (size_t index = 0; index < sequence.anchors_.size(); ++index) add_anchor(sequence, index);
}

void ExclusiveBlocks::add_anchor(const Sequence& sequence, size_t index) {
  store_ = sequence.store_;
  add(store_->layout().recurrent_group, sequence.anchors_[index].state);
  add(store_->layout().hidden_group, sequence.anchors_[index].hidden);
}

size_t ExclusiveBlocks::exclusive_bytes() {
  std::sort(refs_.begin(), refs_.end());
  size_t bytes = 0;
  for (size_t begin = 0, end = 0; begin < refs_.size(); begin = end) {
    const auto [group, block] = refs_[begin];
    while (end < refs_.size() && refs_[end] == refs_[begin]) ++end;
    if (size_t(store_->pool(group).ref_count(block)) == end - begin) {
      bytes += store_->spec(group).block_bytes;
    }
  }
  return bytes;
}

}  // namespace cairn::memory
