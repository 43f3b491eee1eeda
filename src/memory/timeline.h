// A timeline that can be gone back to, with what is known of its use. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/placement.h"
#include "memory/sequence.h"

namespace cairn::memory {

struct Timeline {
  Sequence sequence;
  std::vector<Place> places = {};  // Its borders, also those whose anchors are gone.
  double credit = 0;               // The clock of evictions when it was used last.
  int64_t last_use = 0;
  bool is_active = false;  // Somebody is working with it: only its anchors can go.
};

}  // namespace cairn::memory
