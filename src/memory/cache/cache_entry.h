// An entry of the prefix cache: a sequence, with what is known of its use. Plain data; each part
// says who keeps it.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/cache/placement.h"
#include "memory/sequence.h"

namespace cairn::memory {

struct PrefixNode;

// In which order entries are asked for something to evict.
struct EvictionRank {
  enum class Tier : uint8_t {
    live_state,   // A state that the log replays: no token has to be read again for it.
    valued,       // By worth.
    last_resort,  // An anchor that a log is replayed from.
    held,         // Nothing that would be free now.
    active,       // In use, and nothing of it can go.
  };
  Tier tier = Tier::held;
  double worth = 0;  // The clock's value after the eviction.
  int64_t last_use = 0;
  int64_t id = 0;

  auto operator<=>(const EvictionRank&) const = default;
};

struct CacheEntry {
  int64_t id = 0;  // Ascending in the order of their creation.
  Sequence sequence;
  std::vector<Place> places = {};  // Also those whose anchors were dropped.
  bool is_active = false;          // In use: only its anchors can be evicted.
  bool is_pinned = false;          // Nothing of it is evicted.
  int64_t last_use = 0;            // Ascending from use to use.

  PrefixNode* node = nullptr;  // The prefix tree's: where the sequence ends.

  // The rest is the eviction's.
  double credit = 0;                       // The clock when it was used last.
  bool is_announced = false;               // Whoever asked knows that it has been losing something.
  EvictionRank rank = {};                  // By the last valuation.
  int64_t valued_in = 0;                   // The search in which it was valued last.
  std::vector<double> anchor_losses = {};  // By the last valuation: tokens, for each anchor.
  size_t base_anchor = 0;  // The only one from which the log derives the end, or their count.
};

}  // namespace cairn::memory
