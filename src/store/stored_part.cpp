// Runs of several sequences become one list.
#include "store/stored_part.h"

#include <algorithm>
#include <utility>

namespace cairn::store {
namespace {

// States and rows have empty runs, each of a position of its own.
void add_run(std::vector<PositionRun>& runs, PositionRun added) {
  if (added.begin == added.end) {
    const auto place = std::ranges::lower_bound(runs, added.begin, {}, &PositionRun::begin);
    if (place == runs.end() || *place != added) runs.insert(place, added);
    return;
  }
  const auto first = std::ranges::lower_bound(runs, added.begin, {}, &PositionRun::end);
  auto last = first;
  for (; last != runs.end() && last->begin <= added.end; ++last) {
    added.begin = std::min(added.begin, last->begin);
    added.end = std::max(added.end, last->end);
  }
  runs.insert(runs.erase(first, last), added);
}

}  // namespace

void StoredPart::add(const IndexEntry& entry, int32_t common, const memory::Layout& layout) {
  runs.resize(layout.groups.size());
  length = std::max(length, common);
  for (const StoredPages& stored : entry.pages) {
    const memory::GroupSpec& spec = layout.groups[size_t(stored.group)];
    const int32_t begin = stored.pages.first * spec.page_tokens();
    const int32_t end = std::min(stored.pages.end() * spec.page_tokens(), common);
    if (begin < end) add_run(runs[size_t(stored.group)], {begin, end});
  }
  const auto add_positions = [&](int32_t group, const std::vector<int32_t>& positions) {
    if (group < 0) return;
    for (const int32_t position : positions) {
      if (position <= common) add_run(runs[size_t(group)], {position, position});
    }
  };
  add_positions(layout.recurrent_group, entry.states);
  add_positions(layout.hidden_group, entry.hidden_rows);
}

}  // namespace cairn::store
