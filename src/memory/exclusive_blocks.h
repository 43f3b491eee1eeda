// Which blocks would be free if some sequences were closed: counts the references that these
// sequences hold to each block and compares with the pool's reference count. Only reads. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memory/sequence.h"

namespace cairn::memory {

class ExclusiveBlocks {
 public:
  void add(const Sequence& sequence);          // REQUIRES: all of one memory; none is closed.
  void add_anchors(const Sequence& sequence);  // Only its anchors' states and hidden rows.
  void add_anchor(const Sequence& sequence, size_t index);

  // The bytes of the blocks that only the added sequences and anchors refer to.
  size_t exclusive_bytes();

 private:
  void add(int32_t group, const BlockRef& block);

  const Store* store_ = nullptr;
  std::vector<std::pair<int32_t, PageId>> refs_;  // Group and block, once for each reference.
};

}  // namespace cairn::memory
