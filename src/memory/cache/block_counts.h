// Counts the references that some sequences hold to each block. Compared with the pools' counts,
// they say what would be free if all of these sequences were closed. Only reads them. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/sequence.h"

namespace cairn::memory {

class BlockCounts {
 public:
  // REQUIRES: sequences of one memory, which outlives this; none is closed; what is removed was
  // added and has not changed since.
  void add(const Sequence& sequence);
  void remove(const Sequence& sequence);
  void add_anchors(const Sequence& sequence);  // Only their states and hidden rows.
  void remove_anchors(const Sequence& sequence);

  int32_t count(int32_t group, PageId block) const;
  // Of the blocks that are referred to here, each once.
  size_t held_bytes() const { return held_bytes_; }
  // Of those that nobody else refers to. It looks at every block; it stops where it has seen
  // `enough`.
  size_t exclusive_bytes(size_t enough = SIZE_MAX) const;
  // All of these bytes, by the ledger's accounts.
  std::vector<size_t> exclusive_bytes_by_account() const;

 private:
  void change(int32_t group, PageId block, int32_t by);
  void change(const Sequence& sequence, int32_t by);
  void change_anchors(const Sequence& sequence, int32_t by);

  const Store* store_ = nullptr;              // Null until the first sequence.
  std::vector<std::vector<int32_t>> counts_;  // [group][block]
  size_t held_bytes_ = 0;
};

// All references to a block, or only those that `among` counts.
inline int32_t ref_count(int32_t group, const BlockRef& ref, const BlockCounts* among) {
  return among == nullptr || !ref ? ref.ref_count() : among->count(group, ref.block());
}

}  // namespace cairn::memory
