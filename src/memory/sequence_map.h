// Where the blocks of a sequence lie, and how many others refer to each: memory as people look at
// it. Positions and counts alone, no tokens. Not thread-safe: the engine's thread, as for every
// sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/function_ref.h"
#include "memory/sequence.h"

namespace cairn::memory {

// Neighbouring blocks to which as many others refer. A state or a row stands at a position: its run
// is empty there.
struct HeldRun {
  int32_t begin = 0, end = 0;  // Positions [begin, end).
  int32_t other_refs = 0;      // To each of the blocks, beside the sequence's own.

  bool operator==(const HeldRun&) const = default;
};

struct GroupMap {
  int32_t blocks = 0;  // Each once.
  int32_t shared = 0;  // Those to which others refer.
  size_t bytes = 0;    // Of all of them.
  std::vector<HeldRun> runs;
  bool is_whole = true;  // There were no more runs than were asked for.
};

// A block of a sequence, and how often the sequence itself refers to it.
struct HeldBlock {
  PageId block = kNoPage;
  int32_t begin = 0, end = 0;  // As of a run.
  int32_t own_refs = 1;
};

class SequenceMap {
 public:
  // Hands out each block of the group once, ascending. REQUIRES: the sequence is not closed.
  static void each_block(const Sequence& sequence, int32_t group,
                         FunctionRef<void(const HeldBlock&)> take);
  // By group. Time grows with the pages that it holds.
  static std::vector<GroupMap> of(const Sequence& sequence, size_t runs_max);
};

}  // namespace cairn::memory
