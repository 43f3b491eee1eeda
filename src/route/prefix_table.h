// Who has read which prefix: keys, each with the nodes that had it last. A table of a size that
// only grow() changes, eight keys to a row; where a row is full, the key that was used longest ago
// goes. What it has forgotten, or two keys that are one, cost time and nothing else. Thread rule:
// one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "route/prompt_keys.h"

namespace cairn::route {

class PrefixTable {
 public:
  static constexpr size_t kHoldersMax = 4;
  static constexpr uint16_t kNobody = 0xffff;

  // REQUIRES: a power of two, eight at least.
  explicit PrefixTable(size_t entry_count = size_t(1) << 20) : entries_(entry_count) {}
  // What it knows it knows still. REQUIRES: a power of two, no fewer than there are.
  void grow(size_t entry_count);

  struct Known {
    uint16_t node;
    size_t bytes;  // Of the longest prefix that it has.
  };
  // Those who have the first prefix at least; in no order.
  std::vector<Known> find(std::span<const PromptKeys::Prefix> prefixes);
  // From now on `node` has all of them.
  void add(std::span<const PromptKeys::Prefix> prefixes, uint16_t node);
  // `node` has none of them.
  void forget(std::span<const PromptKeys::Prefix> prefixes, uint16_t node);

  size_t entry_count() const { return entries_.size(); }
  static size_t entry_bytes() { return sizeof(Entry); }
  // Keys that had to go for others.
  uint64_t evicted_count() const { return evicted_count_; }

 private:
  static constexpr size_t kRow = 8;

  struct Entry {
    uint64_t key = 0;
    uint32_t used = 0;  // By the clock of this table; 0: there is none.
    std::array<uint16_t, kHoldersMax> holders = {kNobody, kNobody, kNobody, kNobody};
  };
  Entry* find(uint64_t key);
  std::span<Entry> row_of(uint64_t key);
  // Uses are counted modulo 2^32, but for 0: only what is nearly so old looks younger than it is.
  uint32_t tick();
  uint32_t age_of(const Entry& entry) const;

  std::vector<Entry> entries_;
  uint32_t clock_ = 0;
  uint64_t evicted_count_ = 0;
};

}  // namespace cairn::route
