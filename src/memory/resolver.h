// From which position a sequence can be resumed. Each group of layers knows what a position needs
// and what it holds; the resolver finds the last position that all groups can resume. Pure: knows
// page tables and positions, neither pools nor sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/step.h"
#include "memory/layout.h"

namespace cairn::memory {

// The first position that the token at `position` sees. To resume there, a group with pages must
// hold the pages from this position up to `position` - 1. A token that sees only itself still needs
// the page that it is written into, if earlier tokens are in that page.
int32_t first_needed(const GroupSpec& group, int32_t position);

// What a sequence holds of one group.
struct Holding {
  int32_t group = 0;  // Its index, for the answer.
  const GroupSpec* spec = nullptr;
  std::span<const PageId> pages;       // Of groups with pages, with holes.
  std::span<const int32_t> states;     // Recurrent: positions of states, ascending, with 0.
  int32_t log_begin = 0, log_end = 0;  // Recurrent: what the log holds.
};

// The last position at or before `position` that this group alone can resume; 0 always can.
int32_t last_resumable(const Holding& holding, int32_t position);

struct Resolution {
  int32_t position = 0;
  int32_t limiting_group = -1;  // The last group that lowered the position; -1: none did.
};

// The last position at or before `position` that all groups can resume.
Resolution resolve(std::span<const Holding> holdings, int32_t position);

// Positions [begin, end], both included, that all groups can resume, each from the same state.
struct ResumableRun {
  int32_t begin = 1, end = 1;
  int32_t state = 0;  // The position of the last state up to all of them; 0 without states.

  bool operator==(const ResumableRun&) const = default;
};

// Every position from 1 to `length` that all groups can resume, in runs without a position in
// common, descending.
std::vector<ResumableRun> resumable_runs(std::span<const Holding> holdings, int32_t length);

}  // namespace cairn::memory
