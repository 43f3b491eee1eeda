// Building the tree: nodes are numbered as they come; the table doubles at three quarters.
#include "tokenize/vocabulary_trie.h"

#include "base/check.h"

namespace cairn::tokenize {

void VocabularyTrie::insert(std::string_view key, int32_t token) {
  CHECK(!key.empty());
  uint32_t node = kRoot;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    uint32_t next = step(node, byte);
    if (next == kNowhere) {
      next = uint32_t(tokens_.size());
      tokens_.push_back(kNoToken);
      if (node == kRoot) {
        roots_[byte] = next;
      } else {
        if ((edge_count_ + 1) * 4 > edges_.size() * 3) grow();
        place({uint64_t(node) << 8 | byte, next});
        ++edge_count_;
      }
    }
    node = next;
  }
  if (tokens_[node] == kNoToken) tokens_[node] = token;
}

void VocabularyTrie::grow() {
  std::vector<Edge> old(edges_.size() * 2);
  old.swap(edges_);
  for (const Edge& edge : old) {
    if (edge.to != kNowhere) place(edge);
  }
}

void VocabularyTrie::place(Edge edge) {
  const size_t mask = edges_.size() - 1;
  size_t at = mix(edge.from ^ seed_) & mask;
  while (edges_[at].to != kNowhere) at = (at + 1) & mask;
  edges_[at] = edge;
}

}  // namespace cairn::tokenize
