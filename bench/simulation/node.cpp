// Blocks by their keys.
#include "bench/simulation/node.h"

namespace cairn::bench {

int32_t BlockMemory::common(const store::Chain& chain) const {
  int32_t link = 0;
  while (link < chain.link_count() && places_.contains(store::short_key(chain.link(link + 1)))) {
    ++link;
  }
  return link;
}

void BlockMemory::use(const store::Chain& chain, std::vector<Sha256Digest>& gone) {
  for (int32_t link = chain.link_count(); link > 0; --link) {
    const Sha256Digest& key = chain.link(link);
    const auto [found, is_new] = places_.try_emplace(store::short_key(key));
    if (is_new) {
      newest_.push_front(key);
      found->second = newest_.begin();
    } else {
      newest_.splice(newest_.begin(), newest_, found->second);
    }
  }
  while (places_.size() > most_) {
    gone.push_back(newest_.back());
    places_.erase(store::short_key(newest_.back()));
    newest_.pop_back();
  }
}

void BlockMemory::clear() {
  newest_.clear();
  places_.clear();
}

}  // namespace cairn::bench
