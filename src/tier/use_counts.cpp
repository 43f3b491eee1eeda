// Two generations: when the newer one is full, the older one goes.
#include "tier/use_counts.h"

#include <algorithm>
#include <utility>

namespace cairn::tier {

// Before it was counted.
int32_t UseCounts::add(const Sha256Digest& key, bool counts_again) {
  const uint64_t short_key = store::short_key(key);
  auto found = newest_.find(short_key);
  if (found == newest_.end()) {
    const auto before = older_.find(short_key);
    const int32_t count = before == older_.end() ? 0 : before->second;
    if (newest_.size() >= newest_max_) older_ = std::exchange(newest_, {});
    found = newest_.emplace(short_key, count).first;
  }
  const int32_t count = found->second;
  if (counts_again || count == 0) found->second = std::min(count + 1, 2);
  return count;
}

int32_t UseCounts::add_prompt(const store::Chain& chain, int32_t length) {
  int32_t used = 0;
  for (int32_t link = 1; link <= chain.link_count(); ++link) {
    if (add(chain.link(link), true) > 0) used = link * store::kChainTokens;
  }
  const bool is_whole = length % store::kChainTokens != 0 && add(chain.key_at(length), true) > 0;
  return is_whole ? length : used;
}

void UseCounts::add_answer(const store::Chain& chain, int32_t length) {
  for (int32_t link = 1; link <= chain.link_count(); ++link) (void)add(chain.link(link), false);
  if (length % store::kChainTokens != 0) (void)add(chain.key_at(length), false);
}

}  // namespace cairn::tier
