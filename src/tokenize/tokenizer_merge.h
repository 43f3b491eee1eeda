// Joining neighbours, best first: the core of BPE and of score-based SPM. A word is a row of
// symbols; of all neighbouring pairs that have a joined form, the one with the lowest priority
// number is joined, the leftmost of equals, until none is left. Short words by scanning, long ones
// with a heap: O(n log n). Knows nothing of where joined forms come from.
// One buffer serves one thread; it is reused from word to word, so that nothing is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "tokenize/vocabulary_index.h"

namespace cairn::tokenize {

struct Symbol {
  uint32_t begin;  // Its bytes in the word.
  uint32_t end;
  int32_t token;  // Or kNoToken: one character that is no token of its own.
};

constexpr uint32_t kNeverJoined = UINT32_MAX;

struct Joined {
  uint32_t priority = kNeverJoined;
  int32_t token = kNoToken;
};

// Words of more bytes are cut: positions and priorities share 64 bits.
constexpr size_t kWordBytesMax = size_t{1} << 30;

class MergeBuffer {
 public:
  std::vector<Symbol> symbols;  // The word; afterwards what is left of it.
  uint64_t step_count = 0;      // Look-ups and heap operations so far: the work, for tests.

  // `find(left, right)` gives the Joined form of two neighbours.
  template <class Find>
  void merge(const Find& find) {
    if (symbols.size() < 2) return;
    if (symbols.size() <= kScannedMax) {
      merge_by_scanning(find);
    } else {
      merge_by_heap(find);
    }
  }

 private:
  // Up to here scanning all pairs for each join is faster than a heap.
  static constexpr size_t kScannedMax = 24;
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Links {
    uint32_t previous;
    uint32_t next;
  };
  struct Pair {
    uint64_t key;         // Priority, then position of the left symbol.
    uint32_t byte_count;  // Of both: tells whether one has changed since.
    int32_t token;
  };

  template <class Find>
  void merge_by_scanning(const Find& find) {
    size_t pair_count = symbols.size() - 1;
    Joined pairs[kScannedMax];
    for (size_t i = 0; i < pair_count; ++i) pairs[i] = find(symbols[i], symbols[i + 1]);
    step_count += pair_count;
    while (pair_count > 0) {
      size_t best = 0;
      for (size_t i = 1; i < pair_count; ++i) {
        if (pairs[i].priority < pairs[best].priority) best = i;
      }
      if (pairs[best].priority == kNeverJoined) break;
      symbols[best] = {symbols[best].begin, symbols[best + 1].end, pairs[best].token};
      std::copy(symbols.begin() + std::ptrdiff_t(best) + 2, symbols.end(),
                symbols.begin() + std::ptrdiff_t(best) + 1);
      symbols.pop_back();
      std::copy(pairs + best + 1, pairs + pair_count, pairs + best);
      --pair_count;
      if (best < pair_count) pairs[best] = find(symbols[best], symbols[best + 1]);
      if (best > 0) pairs[best - 1] = find(symbols[best - 1], symbols[best]);
      step_count += 2;
    }
  }

  static bool is_later(const Pair& a, const Pair& b) { return a.key > b.key; }

  template <class Find>
  bool make_pair(uint32_t left, uint32_t right, const Find& find, Pair& pair) {
    ++step_count;
    const Joined joined = find(symbols[left], symbols[right]);
    if (joined.priority == kNeverJoined) return false;
    pair = {uint64_t(joined.priority) << 32 | left, symbols[right].end - symbols[left].begin,
            joined.token};
    return true;
  }

  template <class Find>
  void push(uint32_t left, uint32_t right, const Find& find) {
    Pair pair;
    if (left == kNone || right == kNone || !make_pair(left, right, find, pair)) return;
    heap_.push_back(pair);
    std::push_heap(heap_.begin(), heap_.end(), is_later);
  }

  template <class Find>
  void merge_by_heap(const Find& find) {
    const auto count = uint32_t(symbols.size());
    links_.resize(count);
    heap_.clear();
    for (uint32_t i = 0; i < count; ++i) links_[i] = {i - 1, i + 1 < count ? i + 1 : kNone};
    Pair pair;
    for (uint32_t i = 0; i + 1 < count; ++i) {
      if (make_pair(i, i + 1, find, pair)) heap_.push_back(pair);
    }
    std::make_heap(heap_.begin(), heap_.end(), is_later);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), is_later);
      pair = heap_.back();
      heap_.pop_back();
      ++step_count;
      const auto left = uint32_t(pair.key);
      const uint32_t right = links_[left].next;
      // A symbol that was joined to its left is empty; one that grew makes the sum differ.
      if (symbols[left].begin == symbols[left].end || right == kNone ||
          symbols[right].end - symbols[left].begin != pair.byte_count) {
        continue;
      }
      symbols[left] = {symbols[left].begin, symbols[right].end, pair.token};
      symbols[right].end = symbols[right].begin;
      links_[left].next = links_[right].next;
      if (links_[right].next != kNone) links_[links_[right].next].previous = left;
      push(links_[left].previous, left, find);
      push(left, links_[left].next, find);
    }
    std::erase_if(symbols, [](const Symbol& symbol) { return symbol.begin == symbol.end; });
  }

  std::vector<Links> links_;
  std::vector<Pair> heap_;
};

}  // namespace cairn::tokenize
