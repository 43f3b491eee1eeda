// Makes room in a memory by evicting what is worth least from the prefix cache's entries: anchors,
// the windows before the end, or the last tokens themselves. Blocks that other sequences refer to
// stay. Knows nothing of prompts. Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/cache_entry.h"
#include "memory/memory.h"
#include "memory/placement.h"

namespace cairn::memory {

struct Room {
  size_t needed_bytes = 0;  // Nothing is evicted if not even these can be freed.
  size_t wanted_bytes = 0;
  size_t slack_bytes = 0;  // More, from inactive entries only, so that eviction is rare.
};

class Eviction {
 public:
  // The clock is GreedyDual-Size's: each eviction advances it, and an entry that is used takes its
  // value.
  Eviction(Memory* memory, const RewindHabits& habits, std::vector<CacheEntry>& entries,
           double* clock)
      : memory_(memory), habits_(habits), entries_(entries), clock_(clock) {}

  // Whether the needed bytes are available now. Entries of which nothing is left are removed.
  bool make_room(const Room& room);

  bool drop_least_used();  // A whole entry; false if all are active.
  size_t evictable_bytes() const;

 private:
  // Something that can be evicted.
  struct Candidate {
    enum class Kind : uint8_t { anchor, window, end };
    Kind kind = Kind::anchor;
    double worth = 0;                  // The clock's value after its eviction.
    std::vector<size_t> entries = {};  // Entries that hold it: several if branches share an anchor.
    int32_t position = 0;              // The anchor's; of an end, how far another entry shares it.
    bool is_active = false;            // One of the entries is in use.
    bool is_last_resort = false;       // A log is replayed from it.
  };

  // An anchor of one entry.
  struct Holder {
    int32_t position;
    PageId block;
    size_t entry, anchor;
    double loss;
    bool is_base;  // The log is replayed from it.
  };

  size_t available_bytes() const;
  bool let_go_of_least(const Room& room);
  std::vector<Candidate> candidates() const;
  std::vector<int32_t> branch_positions() const;
  void add_holders(size_t index, const TargetMass& mass, std::vector<Holder>& holders) const;
  void add_anchors(std::vector<Holder> holders, std::vector<Candidate>& list) const;
  void add_anchor(std::span<const Holder> holders, std::vector<Candidate>& list) const;
  void add_window(size_t index, const TargetMass& mass, std::vector<Candidate>& list) const;
  void add_end(size_t index, int32_t branch, const TargetMass& mass,
               std::vector<Candidate>& list) const;
  void let_go(const Candidate& candidate, size_t wanted_bytes);
  void drop_anchor_at(Sequence& sequence, int32_t position);
  void cut_end(CacheEntry& entry, int32_t branch, size_t wanted_bytes);
  void close_gaps();  // Removes the entries that were closed.

  Memory* memory_;
  const RewindHabits& habits_;
  std::vector<CacheEntry>& entries_;
  double* clock_;
};

}  // namespace cairn::memory
