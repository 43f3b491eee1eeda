// Rows are searched from end to end.
#include "route/prefix_table.h"

#include <algorithm>

namespace cairn::route {

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
      entry = &*std::min_element(row.begin(), row.end(),
                                 [](const Entry& a, const Entry& b) { return a.used < b.used; });
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
