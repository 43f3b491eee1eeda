// What a store counts, for people and tests.
#pragma once

#include <cstdint>

namespace cairn::store {

struct StoreStats {
  uint64_t entries = 0, bytes = 0, budget_bytes = 0;
  uint64_t changes = 0;                        // Sequences that came or went.
  uint64_t written_bytes = 0, read_bytes = 0;  // Since it was opened, as all below.
  uint64_t hits = 0, misses = 0;
  uint64_t damaged = 0;    // Records that were put into quarantine.
  uint64_t conflicts = 0;  // Two payloads of one name: an alarm.
  uint64_t scrubbed = 0;   // Files that scrub_next() has read.
  uint64_t condemned = 0;  // Sequences that condemn() has put away.
  uint64_t evicted = 0;    // Sequences.
  uint64_t refused = 0;    // Sequences that could not be written.
};

}  // namespace cairn::store
