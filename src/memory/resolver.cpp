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

// A state derives all positions behind it that the log reaches from there.
int32_t last_with_state(const Holding& holding, int32_t position) {
  const auto above = std::upper_bound(holding.states.begin(), holding.states.end(), position);
  if (above == holding.states.begin()) return 0;
  const int32_t state = *(above - 1);
  return state >= holding.log_begin ? std::max(state, std::min(position, holding.log_end)) : state;
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

}  // namespace cairn::memory
