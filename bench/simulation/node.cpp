// Blocks by their keys.
#include "bench/simulation/node.h"

namespace cairn::bench {

BlockMemory::BlockMemory(size_t most) : most_(most), slots_(1) {}

int32_t BlockMemory::common(const store::Chain& chain) const {
  int32_t link = 0;
  while (link < chain.link_count() && indices_.contains(store::short_key(chain.link(link + 1)))) {
    ++link;
  }
  return link;
}

void BlockMemory::use(const store::Chain& chain, std::vector<Sha256Digest>& gone) {
  for (int32_t link = chain.link_count(); link > 0; --link) {
    const Sha256Digest& key = chain.link(link);
    const auto [found, is_new] = indices_.try_emplace(store::short_key(key));
    if (!is_new) {
      unlink(found->second);
    } else if (empty_.empty()) {
      found->second = uint32_t(slots_.size());
      slots_.push_back({.key = key});
    } else {
      found->second = empty_.back();
      empty_.pop_back();
      slots_[found->second].key = key;
    }
    link_newest(found->second);
  }
  while (indices_.size() > most_) {
    const uint32_t oldest = slots_.front().newer;
    gone.push_back(slots_[oldest].key);
    indices_.erase(store::short_key(slots_[oldest].key));
    unlink(oldest);
    empty_.push_back(oldest);
  }
}

void BlockMemory::unlink(uint32_t slot) {
  slots_[slots_[slot].newer].older = slots_[slot].older;
  slots_[slots_[slot].older].newer = slots_[slot].newer;
}

// In a ring the oldest is what the beginning has for a newer one.
void BlockMemory::link_newest(uint32_t slot) {
  const uint32_t second = slots_.front().older;
  slots_[slot].newer = 0;
  slots_[slot].older = second;
  slots_[second].newer = slot;
  slots_.front().older = slot;
}

void BlockMemory::clear() {
  slots_.assign(1, {});
  empty_.clear();
  indices_.clear();
}

}  // namespace cairn::bench
