// A set of byte strings as a tree, walked one byte at a time: for the longest match at a place of a
// text. Edges lie in one open hash table. Knows nothing of tokens but their number. Thread-safe:
// constant once built.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenize/vocabulary_index.h"

namespace cairn::tokenize {

class VocabularyTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNowhere = UINT32_MAX;

  // The first token of equal keys is kept. REQUIRES: the key is not empty.
  void insert(std::string_view key, int32_t token);

  // The node one byte further, or kNowhere.
  uint32_t step(uint32_t node, unsigned char byte) const {
    if (node == kRoot) return roots_[byte];
    const size_t mask = edges_.size() - 1;
    const uint64_t wanted = uint64_t(node) << 8 | byte;
    for (size_t at = mix(wanted ^ seed_) & mask;; at = (at + 1) & mask) {
      const Edge& edge = edges_[at];
      if (edge.to == kNowhere || edge.from == wanted) return edge.to;
    }
  }
  // The token that ends here, or kNoToken.
  int32_t token(uint32_t node) const { return tokens_[node]; }
  bool starts(unsigned char byte) const { return roots_[byte] != kNowhere; }

 private:
  struct Edge {
    uint64_t from = 0;  // Node and byte.
    uint32_t to = kNowhere;
  };

  void grow();
  void place(Edge edge);

  uint64_t seed_ = hash_seed();
  std::array<uint32_t, 256> roots_ = filled();
  std::vector<Edge> edges_ = std::vector<Edge>(64);
  size_t edge_count_ = 0;
  std::vector<int32_t> tokens_ = {kNoToken};

  static std::array<uint32_t, 256> filled() {
    std::array<uint32_t, 256> roots;
    roots.fill(kNowhere);
    return roots;
  }
};

}  // namespace cairn::tokenize
