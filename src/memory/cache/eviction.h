// Makes room in a memory by evicting what is worth least from the prefix cache's entries. Blocks
// that other sequences refer to stay. Each entry stands in a queue by what its least part was worth
// when it was valued last, one for each tenant; a search values again only what stands first, so
// that its time does not grow with the number of entries. Where tenants have shares, what is above
// one goes first, then what whoever needs room has, then the rest. Knows nothing of prompts. Not
// thread-safe: the engine's thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "memory/cache/cache_entries.h"
#include "memory/cache/placement.h"
#include "memory/cache/shares.h"
#include "memory/cache/valuation.h"
#include "memory/memory.h"

namespace cairn::memory {

struct Room {
  size_t needed_bytes = 0;  // Nothing is evicted if not even these can be freed.
  size_t wanted_bytes = 0;
  size_t slack_bytes = 0;  // More, from inactive entries only, so that eviction is rare.
  // Nothing goes that other tenants hold within their shares.
  bool spares_shares = false;
};

class Eviction {
 public:
  using Announce = std::function<void(const Sequence&)>;

  Eviction(Memory* memory, const RewindHabits* habits, CacheEntries* entries)
      : memory_(memory), entries_(entries), valuation_(memory, habits, entries), shares_(memory) {}

  // From now on the entry, which is new, can be evicted.
  void add(CacheEntry& entry);
  // The entry was used: after its last_use was set.
  void use(CacheEntry& entry);
  // REQUIRES: add() before. For entries that go otherwise.
  void forget(CacheEntry& entry);

  // Whether the needed bytes are available now. `active` is the sequence that needs them, which may
  // lose anchors. Entries of which nothing is left are removed.
  bool make_room(CacheEntry& active, const Room& room);

  // See PrefixCache::on_evict().
  void announce_to(Announce announce) { announce_ = std::move(announce); }

  Shares& shares() { return shares_; }
  const Shares& shares() const { return shares_; }

 private:
  friend class Inspector;  // Tests ask for whom room is made.
  // Whose entries are asked for something to evict, one after the other: each is asked as well in
  // the turns behind its own.
  enum class Turn : uint8_t { above_share, own, anyone };
  size_t available_bytes() const;
  bool has_enough(const Room& room, size_t missing) const;
  bool is_asked(uint64_t tenant) const;
  bool has_evictable() const;
  CacheEntry* first() const;
  void enqueue(CacheEntry& entry);
  void dequeue(CacheEntry& entry);
  void put(CacheEntry& entry, const std::optional<Candidate>& least);
  std::optional<Candidate> value(CacheEntry& entry);
  void value_again();
  void evict(const Room& room);
  void evict_slack(size_t goal);
  size_t wanted_of(const Candidate& candidate, size_t bytes) const;
  std::optional<Candidate> search(int32_t valuations_max);
  void let_go(const Candidate& candidate, size_t wanted_bytes);
  void drop_anchor(const Candidate& candidate);
  void cut_end(CacheEntry& entry, int32_t branch, size_t wanted_bytes);
  bool drop_least_used();
  void remove(CacheEntry& entry);
  void announce(const Candidate& candidate);
  void count_evicted(const CacheEntry& entry, int32_t begin);
  void count_evicted(const Anchor& anchor);

  struct ByRank {
    bool operator()(const CacheEntry* a, const CacheEntry* b) const { return a->rank < b->rank; }
  };

  Memory* memory_;
  CacheEntries* entries_;
  Valuation valuation_;
  Shares shares_;
  Announce announce_;
  std::map<uint64_t, std::set<CacheEntry*, ByRank>> queues_;  // By tenant; none is empty.
  // Of the room that is being made.
  Turn turn_ = Turn::anyone;
  uint64_t asking_tenant_ = 0;
  size_t asked_bytes_ = 0;
  // By id: what would free more if some of it were not in use, or has more than its end.
  std::set<int64_t> overrated_;
  int64_t overrated_cursor_ = 0, all_cursor_ = 0;  // Up to which value_again() has come.
  double clock_ = 0;  // GreedyDual-Size's: the worth of what was evicted last.
  int64_t search_count_ = 0;
};

}  // namespace cairn::memory
