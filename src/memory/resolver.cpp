// The last position that each kind of group can resume, and the descent to one that all of them
// can.
#include "memory/resolver.h"

#include <algorithm>

namespace cairn::memory {

int32_t first_needed(const GroupSpec& group, int32_t position) {
  if (group.kind == GroupKind::window) return std::max(position - group.window + 1, 0);
  if (group.kind == GroupKind::chunked) return position / group.window * group.window;
  return 0;
}

namespace {

// The last of the pages of [begin, end) that is a hole, or -1.
int32_t last_hole(std::span<const PageId> pages, int32_t page_tokens, int32_t begin, int32_t end) {
  const int32_t first_page = begin / page_tokens;
  for (int32_t page = (end + page_tokens - 1) / page_tokens - 1; page >= first_page; --page) {
    if (pages[size_t(page)] == kNoPage) return page;
  }
  return -1;
}

// Where a page is missing, every position behind its first one that is at or before `position`
// needs it too: what is needed begins no later for an earlier position. So the hole's own first
// position is next.
int32_t last_with_pages(const Holding& holding, int32_t position) {
  const int32_t page_tokens = holding.spec->page_tokens();
  while (position > 0) {
    const int32_t begin = first_needed(*holding.spec, position);
    const int32_t hole = last_hole(holding.pages, page_tokens, begin, position);
    if (hole < 0) return position;
    position = hole * page_tokens;
  }
  return 0;
}

// The last state at or before `position`, or 0.
int32_t last_state(const Holding& holding, int32_t position) {
  const auto above = std::upper_bound(holding.states.begin(), holding.states.end(), position);
  return above == holding.states.begin() ? 0 : *(above - 1);
}

// A state derives all positions behind it that the log reaches from there.
int32_t last_with_state(const Holding& holding, int32_t position) {
  const int32_t state = last_state(holding, position);
  return state >= holding.log_begin ? std::max(state, std::min(position, holding.log_end)) : state;
}

// The first position whose tokens see nothing before `needed`, which is up to all positions behind.
int32_t first_that_needs_from(const GroupSpec& group, int32_t needed) {
  if (group.kind == GroupKind::window) return needed + group.window - 1;
  return (needed + group.window - 1) / group.window * group.window;
}

// Where the run of positions begins that this group alone can resume up to `position`, all from the
// same state. REQUIRES: it can resume `position`.
int32_t run_begin(const Holding& holding, int32_t position) {
  switch (holding.spec->kind) {
    case GroupKind::window:
    case GroupKind::chunked: {
      const int32_t page_tokens = holding.spec->page_tokens();
      const int32_t hole = last_hole(holding.pages, page_tokens, 0, position);
      if (hole < 0) return 1;
      return first_that_needs_from(*holding.spec, (hole + 1) * page_tokens);
    }
    case GroupKind::recurrent:
      return last_state(holding, position);
    default:
      return 1;
  }
}

}  // namespace

int32_t last_resumable(const Holding& holding, int32_t position) {
  switch (holding.spec->kind) {
    case GroupKind::window:
    case GroupKind::chunked:
      return last_with_pages(holding, position);
    case GroupKind::recurrent:
      return last_with_state(holding, position);
    default:
      return position;
  }
}

// A position that all groups can resume is never passed over: each answer is at least as high. So
// where the descent stops is the highest of them.
Resolution resolve(std::span<const Holding> holdings, int32_t position) {
  Resolution result{.position = position};
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (const Holding& holding : holdings) {
      const int32_t last = last_resumable(holding, result.position);
      if (last == result.position) continue;
      result = {.position = last, .limiting_group = holding.group};
      is_settled = false;
    }
  }
  return result;
}

std::vector<ResumableRun> resumable_runs(std::span<const Holding> holdings, int32_t length) {
  std::vector<ResumableRun> runs;
  for (int32_t position = length; position > 0;) {
    const int32_t end = resolve(holdings, position).position;
    if (end == 0) break;
    ResumableRun run{.begin = 1, .end = end};
    for (const Holding& holding : holdings) {
      run.begin = std::max(run.begin, run_begin(holding, end));
      if (holding.spec->kind == GroupKind::recurrent) run.state = last_state(holding, end);
    }
    runs.push_back(run);
    position = run.begin - 1;
  }
  return runs;
}

}  // namespace cairn::memory
