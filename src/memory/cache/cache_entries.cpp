// Keeps the tree, the counts and the holders of anchors in step with the entries.
#include "memory/cache/cache_entries.h"

#include <utility>

namespace cairn::memory {

CacheEntry& CacheEntries::add(Sequence sequence, std::vector<Place> places, bool is_pinned) {
  const int64_t id = ++last_id_;
  CacheEntry& entry = entries_[id];
  entry.id = id;
  entry.sequence = std::move(sequence);
  entry.places = std::move(places);
  entry.is_pinned = is_pinned;
  entry.last_use = ++use_count_;
  link(entry);
  return entry;
}

Sequence CacheEntries::remove(CacheEntry& entry) {
  unlink(entry);
  Sequence sequence = std::move(entry.sequence);
  entries_.erase(entry.id);
  return sequence;
}

void CacheEntries::enter(CacheEntry& active) {
  active.id = ++last_id_;
  active.is_active = true;
  active.last_use = use_count_ + 1;
  link(active);
}

void CacheEntries::leave(CacheEntry& active) {
  unlink(active);
}

void CacheEntries::link(CacheEntry& entry) {
  for (const Anchor& anchor : entry.sequence.anchors()) {
    if (anchor.state || anchor.hidden) holdings_.insert(holding(anchor, &entry, entry.id));
  }
  if (entry.is_active) return evictable_.add_anchors(entry.sequence);
  (entry.is_pinned ? pinned_ : evictable_).add(entry.sequence);
  tree_.insert(entry);
}

void CacheEntries::unlink(CacheEntry& entry) {
  for (const Anchor& anchor : entry.sequence.anchors()) {
    if (anchor.state || anchor.hidden) holdings_.erase(holding(anchor, &entry, entry.id));
  }
  if (entry.is_active) return evictable_.remove_anchors(entry.sequence);
  (entry.is_pinned ? pinned_ : evictable_).remove(entry.sequence);
  tree_.erase(entry);
}

std::vector<CacheEntry*> CacheEntries::holders(const Anchor& anchor, size_t count_max) const {
  std::vector<CacheEntry*> found;
  const Holding first = holding(anchor, nullptr, 0);
  for (auto at = holdings_.lower_bound(first); at != holdings_.end(); ++at) {
    const bool is_same = at->is_state == first.is_state && at->block == first.block;
    if (!is_same || found.size() == count_max) break;
    found.push_back(at->entry);
  }
  return found;
}

CacheEntries::Holding CacheEntries::holding(const Anchor& anchor, CacheEntry* entry, int64_t id) {
  const BlockRef& ref = anchor.state ? anchor.state : anchor.hidden;
  return {.is_state = bool(anchor.state), .block = ref.block(), .id = id, .entry = entry};
}

}  // namespace cairn::memory
