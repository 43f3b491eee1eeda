// Rows are searched from end to end.
#include "route/prefix_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace cairn::route {

// Of an old row's keys each goes to one of those that it becomes.
void PrefixTable::grow(size_t entry_count) {
  CHECK(std::has_single_bit(entry_count) && entry_count >= entries_.size());
  const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(entry_count));
  for (const Entry& entry : old) {
    if (entry.used == 0) continue;
    const std::span<Entry> row = row_of(entry.key);
    *std::ranges::find(row, 0u, &Entry::used) = entry;
  }
}

uint32_t PrefixTable::tick() {
  if (++clock_ == 0) ++clock_;
  return clock_;
}

// What is not there is the oldest.
uint32_t PrefixTable::age_of(const Entry& entry) const {
  return entry.used == 0 ? UINT32_MAX : std::min(clock_ - entry.used, UINT32_MAX - 1);
}

std::span<PrefixTable::Entry> PrefixTable::row_of(uint64_t key) {
  const size_t row = (key >> 20) & (entries_.size() / kRow - 1);
  return std::span(entries_).subspan(row * kRow, kRow);
}

PrefixTable::Entry* PrefixTable::find(uint64_t key) {
  for (Entry& entry : row_of(key)) {
    if (entry.used != 0 && entry.key == key) return &entry;
  }
  return nullptr;
}

std::vector<PrefixTable::Known> PrefixTable::find(std::span<const PromptKeys::Prefix> prefixes) {
  std::vector<Known> known;
  for (const PromptKeys::Prefix& prefix : prefixes) {
    const Entry* const entry = find(prefix.key);
    if (entry == nullptr) break;
    for (const uint16_t node : entry->holders) {
      if (node == kNobody) break;
      const auto found = std::find_if(known.begin(), known.end(),
                                      [&](const Known& one) { return one.node == node; });
      if (found == known.end()) {
        known.push_back({node, prefix.end});
      } else {
        found->bytes = prefix.end;
      }
    }
  }
  return known;
}

void PrefixTable::add(std::span<const PromptKeys::Prefix> prefixes, uint16_t node) {
  for (const PromptKeys::Prefix& prefix : prefixes) {
    Entry* entry = find(prefix.key);
    if (entry == nullptr) {
      const std::span<Entry> row = row_of(prefix.key);
      entry = &*std::max_element(row.begin(), row.end(), [this](const Entry& a, const Entry& b) {
        return age_of(a) < age_of(b);
      });
      evicted_count_ += uint64_t(entry->used != 0);
      *entry = Entry{.key = prefix.key};
    }
    entry->used = tick();
    auto place = std::find(entry->holders.begin(), entry->holders.end(), node);
    if (place == entry->holders.end()) --place;
    // The newest first.
    std::move_backward(entry->holders.begin(), place, place + 1);
    entry->holders.front() = node;
  }
}

void PrefixTable::forget(std::span<const PromptKeys::Prefix> prefixes, uint16_t node) {
  for (const PromptKeys::Prefix& prefix : prefixes) {
    Entry* const entry = find(prefix.key);
    if (entry == nullptr) continue;
    const auto end = std::remove(entry->holders.begin(), entry->holders.end(), node);
    std::fill(end, entry->holders.end(), kNobody);
    if (entry->holders.front() == kNobody) *entry = Entry();
  }
}

}  // namespace cairn::route
