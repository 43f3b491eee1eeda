// Which positions of a list of tokens a store has, group by group, put together from the sequences
// that begin alike: for people who look at memory. Positions alone. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/layout.h"
#include "store/index.h"

namespace cairn::store {

// Positions [begin, end). A state or a hidden row stands at a position: its run is empty there.
struct PositionRun {
  int32_t begin = 0, end = 0;

  bool operator==(const PositionRun&) const = default;
};

struct StoredPart {
  int32_t length = 0;  // So many tokens, from the first, begin a stored sequence.
  // By group of the layout, ascending, apart from each other; no groups: nothing is stored.
  std::vector<std::vector<PositionRun>> runs;

  // Whether so many tokens are stored, but for less than a link of them.
  bool has_all(int32_t token_count) const {
    return length > 0 && length / kChainTokens == token_count / kChainTokens;
  }
  // Adds what the entry holds of the first `common` tokens, which are its own first ones.
  // REQUIRES: the entry is of this layout, in each call the same one; common <= entry.length.
  void add(const IndexEntry& entry, int32_t common, const memory::Layout& layout);
};

}  // namespace cairn::store
