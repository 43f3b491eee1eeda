// Which sequences pass a link of their chains: hundreds of thousands of links, nearly all of them
// of one sequence, in two flat arrays. Sequences are numbers here. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::store {

class LinkTable {
 public:
  // Room for so many, so that adding them moves nothing.
  void reserve(size_t count);
  // A sequence once for each of its links. Links are digests: as good as random.
  void add(uint64_t link, uint32_t sequence);
  // REQUIRES: it was added.
  void remove(uint64_t link, uint32_t sequence);
  // Those that pass the link, what was added last first, and no more than `most`.
  std::vector<uint32_t> find(uint64_t link, size_t most = SIZE_MAX) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // An open table; the lists of sequences are chains of passes.
  struct Cell {
    uint64_t link = 0;
    uint32_t first = kNone;  // None: the cell is empty.
  };
  struct Pass {
    uint32_t sequence, next;
  };

  size_t place_of(uint64_t link) const;
  void resize(size_t cell_count);
  void close_gap(size_t place);

  std::vector<Cell> cells_;  // A power of two of them, at most half of them full.
  size_t link_count_ = 0;
  std::vector<Pass> passes_;
  uint32_t unused_ = kNone;  // Chain of passes that were removed.
};

}  // namespace cairn::store
