// The prefix cache: sequences that nobody uses at the moment, kept while the memory's budget has
// room, so that a prompt resumes from the longest prefix that is already computed. Evicts what is
// worth least when an active sequence needs room; never touches what an active sequence holds. Not
// thread-safe: the engine's thread owns it. Must not outlive its Memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "memory/cache_entry.h"
#include "memory/memory.h"
#include "memory/placement.h"

namespace cairn::memory {

class PrefixCache {
 public:
  static constexpr size_t kEntriesMax = 256;  // More would make find() slow.

  explicit PrefixCache(Memory* memory) : memory_(memory) {}

  struct Found {
    const Sequence* sequence = nullptr;  // Valid until the cache changes; null: no entry helps.
    int32_t shared_tokens = 0;           // The length of the prefix that it shares with the prompt.
    int32_t branch = 0;          // The longest prefix behind which an entry goes on otherwise.
    ResumePlan plan;             // For going to shared_tokens, with memory.at().
    int32_t foreign_tokens = 0;  // A prefix shared with an entry of another variant: not usable.
  };
  // The entry of this variant from which the fewest tokens of the prompt have to be computed.
  // Learns from the prompt to which positions conversations are rewound.
  Found find(std::span<const Token> prompt, Variant variant, bool wants_logits);

  // Adds a sequence. Entries that are its prefix and hold nothing that it lacks are removed; if an
  // entry holds all that this sequence does, that entry stays instead and counts as used.
  void keep(Sequence sequence);

  // Memory::begin and begin_replay; if there is no room, what is worth least is evicted from the
  // entries here and from the anchors of `sequence`. No other sequence loses anything, and nothing
  // is evicted if all of it together would not be enough.
  Result<Transaction> begin(Sequence& sequence, const StepRequest& request);
  Result<Replay> begin_replay(Sequence& sequence, int32_t piece_rows);

  // Evicts until so many bytes are available. False, and nothing is evicted, if all of the entries
  // would not be enough.
  bool make_room(size_t bytes);

  void clear() { entries_.clear(); }
  size_t entry_count() const { return entries_.size(); }
  // What clear() would free.
  size_t evictable_bytes() const;
  const RewindHabits& habits() const { return habits_; }

 private:
  void mark_used(CacheEntry& entry);
  static bool begins_with(const Sequence& sequence, const Sequence& beginning);
  bool covers(const Sequence& sequence, const Sequence& beginning) const;
  std::vector<Place> places_of(const Sequence& sequence) const;
  size_t block_bytes(int32_t group) const;
  bool make_room(Sequence& sequence, size_t needed_bytes, size_t wanted_bytes);

  Memory* memory_;
  RewindHabits habits_;
  std::vector<CacheEntry> entries_;
  double clock_ = 0;  // GreedyDual-Size's: the value of what was evicted last.
  int64_t use_count_ = 0;
};

}  // namespace cairn::memory
