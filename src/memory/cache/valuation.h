// What can be evicted of an entry of the prefix cache, and what of that is worth least: an anchor,
// the windows before the end, or the last tokens themselves. Decides, evicts nothing. Not
// thread-safe: the engine's thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/cache/cache_entries.h"
#include "memory/memory.h"
#include "memory/cache/placement.h"

namespace cairn::memory {

// Something that can be evicted.
struct Candidate {
  enum class Kind : uint8_t { live_state, anchor, window, end };
  Kind kind = Kind::anchor;
  EvictionRank rank = {};
  int32_t position = 0;                   // The anchor's; of an end, how far others share it.
  std::vector<CacheEntry*> holders = {};  // Several if branches share an anchor.
};

class Valuation {
 public:
  // What more entries than this share stays until they have become fewer: it is likely to be
  // wanted again, and it could not go without a pause.
  static constexpr size_t kHoldersMax = 32;

  Valuation(Memory* memory, const RewindHabits* habits, const CacheEntries* entries)
      : memory_(memory), habits_(habits), entries_(entries) {}

  // What is worth least of the entry, if anything would be free now; with `among`, if there were no
  // references but those that it counts. Also remembers the losses.
  std::optional<Candidate> least(CacheEntry& entry, const BlockCounts* among = nullptr) const;

  // What losing each of its anchors would cost, for the entries that share them.
  void remember_losses(CacheEntry& entry) const;

  // From now on this sequence needs room, or none does.
  void start(const CacheEntry* active) {
    active_ = active;
    spares_active = only_ends = false;
  }
  bool spares_active = false;  // What the active sequence holds is nothing to be evicted.
  bool only_ends = false;      // Nothing smaller is either.

 private:
  void remember_losses(CacheEntry& entry, const TargetMass& mass) const;
  static Candidate candidate(Candidate::Kind kind, CacheEntry& entry, EvictionRank::Tier tier,
                             double density);
  std::optional<Candidate> of_anchor(CacheEntry& entry, size_t index,
                                     const BlockCounts* among) const;
  size_t shared_bytes(const Anchor& anchor, std::span<CacheEntry* const> holders,
                      const BlockCounts* among) const;
  std::optional<Candidate> of_window(CacheEntry& entry, const TargetMass& mass,
                                     const BlockCounts* among) const;
  std::optional<Candidate> of_end(CacheEntry& entry, const TargetMass& mass,
                                  const BlockCounts* among) const;

  Memory* memory_;
  const RewindHabits* habits_;
  const CacheEntries* entries_;
  const CacheEntry* active_ = nullptr;
};

}  // namespace cairn::memory
