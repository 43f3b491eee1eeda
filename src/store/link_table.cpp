// Open addressing: a link lies in the first cell from its own place on that was empty then.
#include "store/link_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace cairn::store {

// The link's cell, or the empty one where it would be. REQUIRES: there is an empty one.
size_t LinkTable::place_of(uint64_t link) const {
  const size_t mask = cells_.size() - 1;
  size_t place = size_t(link) & mask;
  while (cells_[place].first != kNone && cells_[place].link != link) place = (place + 1) & mask;
  return place;
}

void LinkTable::reserve(size_t count) {
  passes_.reserve(count);
  if (2 * count > cells_.size()) resize(std::bit_ceil(2 * count));
}

void LinkTable::resize(size_t cell_count) {
  const std::vector<Cell> before = std::exchange(cells_, std::vector<Cell>(cell_count));
  for (const Cell& cell : before) {
    if (cell.first != kNone) cells_[place_of(cell.link)] = cell;
  }
}

void LinkTable::add(uint64_t link, uint32_t sequence) {
  if (2 * (link_count_ + 1) > cells_.size()) resize(std::max<size_t>(2 * cells_.size(), 16));
  Cell& cell = cells_[place_of(link)];
  link_count_ += size_t(cell.first == kNone);
  const Pass pass{.sequence = sequence, .next = cell.first};
  cell.link = link;
  if (unused_ == kNone) {
    cell.first = uint32_t(passes_.size());
    passes_.push_back(pass);
    return;
  }
  cell.first = unused_;
  unused_ = std::exchange(passes_[unused_], pass).next;
}

void LinkTable::remove(uint64_t link, uint32_t sequence) {
  CHECK(!cells_.empty());
  const size_t place = place_of(link);
  uint32_t* at = &cells_[place].first;
  while (*at != kNone && passes_[*at].sequence != sequence) at = &passes_[*at].next;
  CHECK(*at != kNone);
  const uint32_t gone = *at;
  *at = std::exchange(passes_[gone].next, unused_);
  unused_ = gone;
  if (cells_[place].first == kNone) close_gap(place);
}

// What lies behind an emptied cell and passed over it moves up, or nobody would find it.
void LinkTable::close_gap(size_t place) {
  --link_count_;
  const size_t mask = cells_.size() - 1;
  for (size_t next = (place + 1) & mask; cells_[next].first != kNone; next = (next + 1) & mask) {
    const size_t own = size_t(cells_[next].link) & mask;
    const bool passed_over = ((next - own) & mask) >= ((next - place) & mask);
    if (passed_over) cells_[std::exchange(place, next)] = cells_[next];
  }
  cells_[place] = {};
}

std::vector<uint32_t> LinkTable::find(uint64_t link, size_t most) const {
  std::vector<uint32_t> sequences;
  if (cells_.empty()) return sequences;
  uint32_t at = cells_[place_of(link)].first;
  for (; at != kNone && sequences.size() < most; at = passes_[at].next) {
    sequences.push_back(passes_[at].sequence);
  }
  return sequences;
}

}  // namespace cairn::store
