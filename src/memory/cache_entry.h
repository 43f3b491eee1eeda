// An entry of the prefix cache: a sequence, with what is known of its use. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/placement.h"
#include "memory/sequence.h"

namespace cairn::memory {

struct CacheEntry {
  Sequence sequence;
  std::vector<Place> places = {};  // Also those whose anchors were dropped.
  double credit = 0;               // The eviction clock when it was used last.
  int64_t last_use = 0;
  bool is_active = false;  // In use: only its anchors can be evicted.
};

}  // namespace cairn::memory
