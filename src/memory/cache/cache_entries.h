// The entries of a prefix cache, and what is counted and indexed of them: where they begin alike,
// who holds a block, what would be free without them. All of it is in step after each call. Knows
// nothing of worth. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "memory/cache/block_counts.h"
#include "memory/cache/cache_entry.h"
#include "memory/cache/prefix_tree.h"
#include "memory/memory.h"

namespace cairn::memory {

class CacheEntries {
 public:
  explicit CacheEntries(const Memory* memory) : tree_(memory) {}

  // Entries stay where they are until they are removed. REQUIRES: not closed, not empty.
  CacheEntry& add(Sequence sequence, std::vector<Place> places, bool is_pinned);
  Sequence remove(CacheEntry& entry);  // The result is its sequence.

  // The entry was used last. A new one was as well.
  void use(CacheEntry& entry) { tree_.use(entry, ++use_count_); }

  // A sequence in use is no entry that can be found, but shares anchors with entries.
  void enter(CacheEntry& active);
  void leave(CacheEntry& active);

  // Between these two the entry's sequence may change; it must not be closed or empty then.
  void unlink(CacheEntry& entry);
  void link(CacheEntry& entry);

  const PrefixTree& tree() const { return tree_; }
  // By id.
  const std::map<int64_t, CacheEntry>& all() const { return entries_; }
  std::map<int64_t, CacheEntry>& all() { return entries_; }

  // Those whose anchor has this block, a state or (without one) a hidden row: by id, at most
  // `count_max`. A block belongs to one position.
  std::vector<CacheEntry*> holders(const Anchor& anchor, size_t count_max) const;

  // What entries hold that are not pinned, and of the active sequence the anchors; and what pinned
  // entries hold.
  const BlockCounts& evictable() const { return evictable_; }
  const BlockCounts& pinned() const { return pinned_; }

 private:
  struct Holding {
    bool is_state;
    PageId block;
    int64_t id;
    CacheEntry* entry;
    auto key() const { return std::tuple(is_state, block, id); }
    bool operator<(const Holding& other) const { return key() < other.key(); }
  };
  static Holding holding(const Anchor& anchor, CacheEntry* entry, int64_t id);

  PrefixTree tree_;
  std::map<int64_t, CacheEntry> entries_;
  std::set<Holding> holdings_;
  BlockCounts evictable_, pinned_;
  int64_t last_id_ = 0, use_count_ = 0;
};

}  // namespace cairn::memory
