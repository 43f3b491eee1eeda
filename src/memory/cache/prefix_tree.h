// Finds, among kept sequences, those that begin like a prompt: a radix tree over tokens, for each
// variant. It also knows the positions at which each sequence can be resumed, so that the latest
// one on a prompt's path is found without asking the sequences. The time of a look-up depends on
// the prompt's length and on how often sequences part along it, not on how many there are. Only
// reads entries, but for `node` and `last_use`. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "memory/cache/cache_entry.h"
#include "memory/memory.h"

namespace cairn::memory {

class PrefixTree {
 public:
  explicit PrefixTree(const Memory* memory);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // The entry stays where it is, and its sequence as it is, until it is erased.
  // REQUIRES: not closed, not empty.
  void insert(CacheEntry& entry);
  void erase(CacheEntry& entry);
  // Sets the entry's last_use, later than that of any other. Of runs that begin alike, it is the
  // entry that was used last that is found.
  void use(CacheEntry& entry, int64_t last_use);

  struct Match {
    int32_t shared = 0;             // The longest prefix of the prompt that an entry begins with.
    CacheEntry* nearest = nullptr;  // One of those that do; one that ends there if there is one.
    bool goes_on = false;           // One of them goes on behind it.
    // The last position of the prompt that an entry can be resumed at, and the entry that does so
    // with the fewest steps of the recurrence; null at 0.
    int32_t resume = 0;
    CacheEntry* best = nullptr;
  };
  // `wants_logits`: the end of the prompt only counts where its hidden row is held.
  Match match(std::span<const Token> prompt, Variant variant, bool wants_logits) const;

  // The longest prefix of the prompt that the same tenant's entries of other variants begin with.
  int32_t foreign_prefix(std::span<const Token> prompt, Variant variant) const;

  // The longest prefix that an entry shares with another one, and one of those that share it; null
  // at 0.
  struct Neighbour {
    int32_t shared = 0;
    CacheEntry* entry = nullptr;
  };
  static Neighbour neighbour(const CacheEntry& entry);

  // At most `count_max` of the entries that the tokens begin with, the longest first; and of those
  // that begin with the tokens.
  std::vector<CacheEntry*> beginnings(std::span<const Token> tokens, Variant variant,
                                      size_t count_max) const;
  std::vector<CacheEntry*> continuations(std::span<const Token> tokens, Variant variant,
                                         size_t count_max) const;

 private:
  struct Spot {  // `depth` tokens from the root; in the middle of the node's edge or at its end.
    PrefixNode* node;
    int32_t depth;
  };
  Spot walk(PrefixNode& root, std::span<const Token> tokens) const;

  const Memory* memory_;
  std::map<Variant, std::unique_ptr<PrefixNode>> roots_;  // Those that have entries.
};

}  // namespace cairn::memory
