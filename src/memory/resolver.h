// From where a timeline can go on. Each group answers for itself what a position needs and what it
// holds; the resolver finds the last position that all of them can resume. Pure: knows page tables
// and positions, neither pools nor sequences.
#pragma once

#include <cstdint>
#include <span>

#include "device/step.h"
#include "memory/layout.h"

namespace cairn::memory {

// To go on at `position`, a group with pages must hold them from the one of this position up to the
// one before `position`: what the next token sees. Where it sees nothing but itself that is still
// the page that it goes into, if that has a beginning.
int32_t first_needed(const GroupSpec& group, int32_t position);

// What one group of a timeline holds.
struct Holding {
  int32_t group = 0;  // Its index, for the answer.
  const GroupSpec* spec = nullptr;
  std::span<const PageId> pages;       // Of groups with pages, with holes.
  std::span<const int32_t> states;     // Recurrent: positions of states, ascending, with 0.
  int32_t log_begin = 0, log_end = 0;  // Recurrent: what the log holds.
};

// The last position at or before `position` from which this group alone can go on; 0 always can.
int32_t last_resumable(const Holding& holding, int32_t position);

struct Resolution {
  int32_t position = 0;
  int32_t limiting_group = -1;  // The last one that had to go back further; -1: none had to.
};

// The last position at or before `position` from which all groups can go on.
Resolution resolve(std::span<const Holding> holdings, int32_t position);

}  // namespace cairn::memory
