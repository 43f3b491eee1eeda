// What would be free if some sequences were closed: counts how often they name each block, and asks
// the pools whether anybody else does. A pure reader. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memory/sequence.h"

namespace cairn::memory {

class Census {
 public:
  void add(const Sequence& sequence);          // REQUIRES: all of one memory; none is closed.
  void add_anchors(const Sequence& sequence);  // Only what its anchors name: states and rows.
  void add_anchor(const Sequence& sequence, size_t index);

  // The bytes of blocks that nobody names but those that were added.
  size_t exclusive_bytes();

 private:
  void add(int32_t group, const BlockRef& block);

  const Store* store_ = nullptr;
  std::vector<std::pair<int32_t, PageId>> names_;  // Group and block, once for each name.
};

}  // namespace cairn::memory
