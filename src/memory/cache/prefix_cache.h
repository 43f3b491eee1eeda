// The prefix cache: sequences that nobody uses at the moment, kept while the memory's budget has
// room, so that a prompt resumes from the longest prefix that is already computed. Evicts what is
// worth least when an active sequence needs room; never touches what an active sequence holds, nor
// what is pinned. Not thread-safe: the engine's thread owns it. Must not outlive its Memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "memory/cache/cache_entries.h"
#include "memory/cache/eviction.h"
#include "memory/cache/placement.h"
#include "memory/memory.h"

namespace cairn::memory {

enum class PinId : int64_t {};

class PrefixCache {
 public:
  explicit PrefixCache(Memory* memory)
      : memory_(memory), entries_(memory), eviction_(memory, &habits_, &entries_) {}
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  struct Found {
    const Sequence* sequence = nullptr;  // Valid until the cache changes; null: no entry helps.
    int32_t shared_tokens = 0;           // The length of the prefix that it shares with the prompt.
    int32_t branch = 0;  // The longest prefix behind which an entry goes on otherwise.
    ResumePlan plan;     // For going to shared_tokens, with memory.at().
    // A prefix shared with the tenant's entry of another variant: not usable.
    int32_t foreign_tokens = 0;
  };
  // The entry of this variant from which the fewest tokens of the prompt have to be computed; of
  // several, one with the fewest steps of the recurrence. The time does not grow with the number of
  // entries. Learns from the prompt to which positions conversations are rewound.
  Found find(std::span<const Token> prompt, Variant variant, bool wants_logits);
  // The same for who only looks: nothing is learnt of it, and no entry counts as used.
  Found look(std::span<const Token> prompt, Variant variant, bool wants_logits) const;

  // Adds a sequence. Entries that are its prefix and hold nothing that it lacks are removed; if an
  // entry holds all that this sequence does, that entry stays instead and counts as used. So that
  // the time does not grow with the number of entries, at most kComparedMax are compared each time.
  static constexpr size_t kComparedMax = 16;
  void keep(Sequence sequence);

  // Keeps a sequence as an entry of its own, of which nothing is evicted or removed until unpin().
  // Then it is kept like others. Errors: no_room, if all that is pinned would hold more bytes than
  // the quota, each block counted once; closed or empty. Nothing changes then.
  Result<PinId> pin(Sequence sequence);
  Status unpin(PinId pin);  // Errors: no such pin.
  void unpin_all();
  // At first there is no room for pins. A smaller quota releases none of them.
  void set_pin_quota(size_t bytes) { pin_quota_bytes_ = bytes; }
  // What one tenant may pin.
  size_t pin_quota() const { return shares().part_of(pin_quota_bytes_); }
  size_t pinned_bytes() const { return entries_.pinned().held_bytes(); }

  // `announce` is called before an entry loses anything but a live state to eviction, with all that
  // it still holds: at most once until it is used again. Where several entries lose what they have
  // in common, one of them is announced, and none if one was before. Not called for active
  // sequences. It must not use the cache; blocks of a copy that it keeps cannot be evicted.
  void on_evict(Eviction::Announce announce) { eviction_.announce_to(std::move(announce)); }

  // `give_way` is called when all that could be evicted for somebody is not enough: it gives back
  // something of what is no block (Memory::take_others), and says whether there was any. It must
  // not use the cache.
  void on_shortage(std::function<bool()> give_way) { give_way_ = std::move(give_way); }

  // Memory::begin and begin_replay; if there is no room, what is worth least is evicted from the
  // entries here and from the anchors of `sequence`. No other sequence loses anything, and nothing
  // is evicted if all of it together would not be enough. `spares_shares`: what other tenants hold
  // within their shares is none of it; otherwise it goes last.
  Result<Transaction> begin(Sequence& sequence, const StepRequest& request,
                            bool spares_shares = false);
  Result<Replay> begin_replay(Sequence& sequence, int32_t piece_rows, bool spares_shares = false);

  // Evicts until so many bytes are available for a variant. False, and nothing is evicted, if all
  // of the entries would not be enough.
  bool make_room(size_t bytes, Variant variant = Variant::plain, bool spares_shares = false);

  // See Shares.
  void set_shares(std::vector<uint64_t> tenants, size_t bytes) {
    eviction_.shares().set(std::move(tenants), bytes);
  }
  const Shares& shares() const { return eviction_.shares(); }

  // Removes all entries, pinned ones too, that share more than `position` tokens with these: what
  // lies behind is known to be wrong.
  void condemn(std::span<const Token> tokens, Variant variant, int32_t position);
  // Removes all entries that are not pinned; those of one tenant.
  void clear();
  void clear(uint64_t tenant);
  size_t entry_count() const { return entries_.all().size(); }
  // Of all entries, in the order in which they were added. Valid until the cache changes.
  std::vector<const Sequence*> sequences() const;
  // The same, with what tells them apart.
  struct Listed {
    int64_t id = 0;        // Ascending in the order in which they were added.
    int64_t last_use = 0;  // Ascending from use to use.
    bool is_pinned = false;
    const Sequence* sequence = nullptr;
  };
  std::vector<Listed> list() const;
  // What clear() would free.
  size_t evictable_bytes() const { return entries_.evictable().exclusive_bytes(); }
  // What can be evicted for a tenant where the shares of others are spared.
  size_t evictable_bytes_for(uint64_t tenant) const {
    return shares().evictable_bytes(tenant, entries_.evictable());
  }
  bool would_give_more(uint64_t tenant) const {
    return shares().would_give_more(tenant, entries_.evictable());
  }
  const RewindHabits& habits() const { return habits_; }

 private:
  friend class Inspector;
  Found found_in(const PrefixTree::Match& match, std::span<const Token> prompt, Variant variant,
                 bool wants_logits) const;
  void mark_used(CacheEntry& entry);
  void remove(CacheEntry& entry);
  void remove_covered(const Sequence& sequence);
  bool covers(const Sequence& sequence, const Sequence& beginning) const;
  std::vector<Place> places_of(const Sequence& sequence) const;
  size_t block_bytes(int32_t group) const;
  bool make_room(Sequence& sequence, size_t needed_bytes, size_t wanted_bytes, bool spares_shares);

  Memory* memory_;
  RewindHabits habits_;
  CacheEntries entries_;
  Eviction eviction_;
  size_t pin_quota_bytes_ = 0;
  std::function<bool()> give_way_;  // None: nobody has any.
};

}  // namespace cairn::memory
