// The table of merges of a BPE vocabulary: from two neighbouring tokens to their joined form and
// its rank. Thread-safe: constant once built.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenize/tokenizer_merge.h"
#include "tokenize/vocabulary.h"

namespace cairn::tokenize {

class BpeMerges {
 public:
  // "left right", best first. A merge whose three tokens are not all in the vocabulary is left out,
  // with a warning to the vocabulary.
  static BpeMerges build(std::span<const std::string_view> merges, Vocabulary::Spelling spelling,
                         Vocabulary& vocabulary);

  Joined find(int32_t left, int32_t right) const {
    if (slots_.empty()) return {};
    const uint64_t wanted = key(left, right);
    const size_t mask = slots_.size() - 1;
    for (size_t at = mix(wanted ^ seed_) & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.key == wanted) return slot.joined;
      if (slot.key == kFree) return {};
    }
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;  // No pair of tokens: ids are not negative.

  struct Slot {
    uint64_t key = kFree;
    Joined joined;
  };

  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }
  void insert(int32_t left, int32_t right, Joined joined);

  uint64_t seed_ = hash_seed();
  std::vector<Slot> slots_;
};

}  // namespace cairn::tokenize
