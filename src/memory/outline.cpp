// Checking and shortening outlines, and where they can be resumed.
#include "memory/outline.h"

#include <algorithm>

#include "memory/resolver.h"

namespace cairn::memory {

namespace {

Error wrong(std::string_view field, int64_t found) {
  return fail(ErrorCode::invalid_data, "sequence: {} does not fit to the others, found {}", field,
              found);
}

// The pages of a group, as tables have them: any number for those that are held.
std::vector<PageId> pages_of(std::span<const PageRun> runs, int32_t page_count) {
  std::vector<PageId> pages(size_t(page_count), kNoPage);
  for (const PageRun& run : runs) {
    std::fill_n(pages.begin() + run.first, run.count, PageId(0));
  }
  return pages;
}

// How many of the first pages are held without a hole.
int32_t leading_pages(std::span<const PageRun> runs) {
  return runs.empty() || runs.front().first != 0 ? 0 : runs.front().count;
}

void truncate(std::vector<PageRun>& runs, int32_t page_count) {
  std::erase_if(runs, [&](const PageRun& run) { return run.first >= page_count; });
  if (!runs.empty())
    runs.back().count = std::min(runs.back().count, page_count - runs.back().first);
}

Status check_runs(const GroupSpec& spec, std::span<const PageRun> runs, int32_t length) {
  const int32_t page_count = spec.has_pages() ? spec.page_count(length) : 0;
  int32_t end = -1;  // Runs that touch would be one.
  for (const PageRun& run : runs) {
    if (run.first <= end || run.count <= 0 || run.first >= page_count ||
        run.count > page_count - run.first) {
      return wrong("a run of pages", run.first);
    }
    end = run.end();
  }
  return Ok{};
}

Status check_anchors(const Outline& outline, const Layout& layout) {
  int32_t previous = 0;
  for (const OutlineAnchor& anchor : outline.anchors) {
    if (anchor.position <= previous || anchor.position > outline.length()) {
      return wrong("an anchor's position", anchor.position);
    }
    if (anchor.kind > AnchorKind::tail) return wrong("an anchor's kind", int64_t(anchor.kind));
    if (anchor.has_state && layout.recurrent_group < 0) return wrong("an anchor's state", 1);
    if (anchor.has_hidden && layout.hidden_group < 0) return wrong("an anchor's hidden row", 1);
    previous = anchor.position;
  }
  if (outline.has_state && layout.recurrent_group < 0) return wrong("the end's state", 1);
  if (outline.has_hidden && layout.hidden_group < 0) return wrong("the end's hidden row", 1);
  return Ok{};
}

bool has_state_at(const Outline& outline, int32_t position) {
  return std::ranges::any_of(outline.anchors, [&](const OutlineAnchor& anchor) {
    return anchor.has_state && anchor.position == position;
  });
}

// The log begins at a state, or at the beginning, and goes on to the end.
Status check_log(const Outline& outline, const Layout& layout) {
  const int32_t begin = outline.log_begin, length = outline.length();
  if (begin < 0 || begin > length) return wrong("the log's beginning", begin);
  if (layout.log_group < 0) {
    return begin == length ? Status(Ok{}) : Status(wrong("the log's beginning", begin));
  }
  const auto& runs = outline.runs[size_t(layout.log_group)];
  if (begin == length) return runs.empty() ? Status(Ok{}) : Status(wrong("the log's pages", 1));
  if (begin > 0 && !has_state_at(outline, begin)) return wrong("the log's beginning", begin);
  const GroupSpec& spec = layout.groups[size_t(layout.log_group)];
  const int32_t first = begin / spec.page_tokens();
  const PageRun whole{.first = first, .count = spec.page_count(length) - first};
  const bool is_whole = runs.size() == 1 && runs.front() == whole;
  return is_whole ? Status(Ok{}) : Status(wrong("the log's pages", int64_t(runs.size())));
}

std::vector<int32_t> positions_of(const Outline& outline, bool OutlineAnchor::*has,
                                  bool has_at_end) {
  std::vector<int32_t> positions;
  for (const OutlineAnchor& anchor : outline.anchors) {
    if (anchor.*has) positions.push_back(anchor.position);
  }
  const bool is_new = positions.empty() || positions.back() != outline.length();
  if (has_at_end && is_new && outline.length() > 0) positions.push_back(outline.length());
  return positions;
}

}  // namespace

std::vector<int32_t> Outline::state_positions() const {
  return positions_of(*this, &OutlineAnchor::has_state, has_state);
}

std::vector<int32_t> Outline::hidden_positions() const {
  return positions_of(*this, &OutlineAnchor::has_hidden, has_hidden);
}

void Outline::cut(const Layout& layout, int32_t length) {
  if (length == this->length()) return;
  tokens.resize(size_t(length));
  for (size_t group = 0; group < runs.size(); ++group) {
    const GroupSpec& spec = layout.groups[group];
    if (spec.has_pages()) truncate(runs[group], spec.page_count(length));
  }
  while (!anchors.empty() && anchors.back().position > length) anchors.pop_back();
  const bool has_anchor = !anchors.empty() && anchors.back().position == length;
  has_state = has_anchor && anchors.back().has_state;
  has_hidden = has_anchor && anchors.back().has_hidden;
  log_begin = std::min(log_begin, length);
  trim_log(layout);
}

void Outline::drop_pages(const Layout& layout, int32_t group, const PageRun& pages) {
  if (group == layout.log_group) return drop_log(layout);
  std::vector<PageRun> left;
  for (const PageRun& run : runs[size_t(group)]) {
    const int32_t before = std::min(run.end(), pages.first) - run.first;
    const int32_t behind = run.end() - std::max(run.first, pages.end());
    if (before > 0) left.push_back({.first = run.first, .count = before});
    if (behind > 0) left.push_back({.first = run.end() - behind, .count = behind});
  }
  runs[size_t(group)] = std::move(left);
}

void Outline::drop_state(const Layout& layout, int32_t position) {
  for (OutlineAnchor& anchor : anchors) {
    if (anchor.position == position) anchor.has_state = false;
  }
  if (position == length()) has_state = false;
  trim_log(layout);
}

void Outline::drop_log(const Layout& layout) {
  log_begin = length();
  trim_log(layout);
}

// It begins at the next state, where the one that it began with has gone.
void Outline::trim_log(const Layout& layout) {
  if (layout.log_group < 0) {
    log_begin = length();
    return;
  }
  if (log_begin > 0 && log_begin < length() && !has_state_at(*this, log_begin)) {
    const auto next = std::ranges::find_if(anchors, [&](const OutlineAnchor& anchor) {
      return anchor.has_state && anchor.position > log_begin;
    });
    log_begin = next == anchors.end() ? length() : next->position;
  }
  const GroupSpec& spec = layout.groups[size_t(layout.log_group)];
  const int32_t first = log_begin / spec.page_tokens();
  runs[size_t(layout.log_group)].clear();
  if (log_begin == length()) return;
  runs[size_t(layout.log_group)].push_back(
      {.first = first, .count = spec.page_count(length()) - first});
}

Status check(const Outline& outline, const Layout& layout) {
  if (outline.tokens.empty()) return wrong("the number of tokens", 0);
  for (const Token token : outline.tokens) {
    if (index_of(token) < 0) return wrong("a token", index_of(token));
  }
  if (outline.runs.size() != layout.groups.size()) {
    return wrong("the number of groups", int64_t(outline.runs.size()));
  }
  if (outline.protected_from < 0) return wrong("the protected end", outline.protected_from);
  for (size_t group = 0; group < layout.groups.size(); ++group) {
    CAIRN_TRY(check_runs(layout.groups[group], outline.runs[group], outline.length()));
  }
  CAIRN_TRY(check_anchors(outline, layout));
  return check_log(outline, layout);
}

int32_t resume_position(const Outline& outline, const Layout& layout, int32_t position,
                        bool wants_logits) {
  std::vector<std::vector<PageId>> pages(layout.groups.size());
  std::vector<int32_t> states = outline.state_positions();
  states.insert(states.begin(), 0);
  std::vector<Holding> holdings;
  const int32_t target = position;
  for (size_t group = 0; group < layout.groups.size(); ++group) {
    const GroupSpec& spec = layout.groups[group];
    Holding holding{.group = int32_t(group), .spec = &spec, .pages = {}, .states = {}};
    if (spec.kind == GroupKind::full) {
      const int64_t held = int64_t(leading_pages(outline.runs[group])) * spec.page_tokens();
      position = int32_t(std::min<int64_t>(position, held));
      continue;
    }
    if (spec.has_window()) {
      pages[group] = pages_of(outline.runs[group], spec.page_count(outline.length()));
      holding.pages = pages[group];
    } else if (spec.kind == GroupKind::recurrent) {
      holding.states = states;
      holding.log_begin = layout.log_group < 0 ? outline.length() + 1 : outline.log_begin;
      holding.log_end = outline.length();
    } else {
      continue;
    }
    holdings.push_back(holding);
  }
  const int32_t resume = resolve(holdings, position).position;
  if (!wants_logits || resume < target || resume == 0) return resume;
  const std::vector<int32_t> rows = outline.hidden_positions();
  const bool has_logits = std::binary_search(rows.begin(), rows.end(), resume);
  return has_logits ? resume : resolve(holdings, resume - 1).position;
}

std::vector<BlockPart> block_parts(const Layout& layout, int32_t group) {
  std::vector<BlockPart> parts;
  const auto add = [&](size_t offset, size_t bytes) {
    if (bytes == 0) return;
    if (!parts.empty() && parts.back().offset + parts.back().bytes == offset) {
      parts.back().bytes += bytes;
    } else {
      parts.push_back({.offset = offset, .bytes = bytes});
    }
  };
  const std::byte* first = nullptr;  // A group's first plane is where its first block begins.
  const auto add_plane = [&](const std::byte* place, size_t bytes) {
    if (first == nullptr && parts.empty()) first = place;
    add(size_t(reinterpret_cast<uintptr_t>(place) - reinterpret_cast<uintptr_t>(first)), bytes);
  };
  for (const KvPlane& plane : layout.kv_planes) {
    if (plane.group != group) continue;
    const size_t head_count = size_t(plane.kv_head_count);
    add_plane(plane.keys, head_count * plane.key_bytes);
    if (!plane.values_in_keys) add_plane(plane.values, head_count * plane.value_bytes);
  }
  for (const LogPlane& plane : layout.log_planes) {
    if (plane.group != group) continue;
    add_plane(plane.first, size_t(kLogPageTokens) * size_t(plane.width) * sizeof(float));
  }
  for (const StateTensor& tensor : layout.state_tensors) {
    if (tensor.group == group) add(tensor.offset, tensor.bytes);
  }
  if (group == layout.hidden_group) add(0, layout.hidden_bytes());
  return parts;
}

}  // namespace cairn::memory
