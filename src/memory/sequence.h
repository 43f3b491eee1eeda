// One timeline of tokens and what the model keeps of them: pages for attention, a state for
// recurrence. A value: copying it forks (references, no bytes); a copy that is left alone is a
// snapshot. Changed only through a Transaction.
// Invariants: (1) every group is at position length(); (2) pages and states that are named by more
// than one sequence are never written; (3) anchors ascend, up to length().
// Not thread-safe; must not outlive its Memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "memory/pool.h"

namespace cairn::memory {

// Names of blocks of one pool; copying it names them once more.
class BlockRefs {
 public:
  explicit BlockRefs(Pool* pool) : pool_(pool) {}
  BlockRefs(const BlockRefs& other);
  BlockRefs(BlockRefs&& other) noexcept;
  BlockRefs& operator=(BlockRefs other) noexcept;
  ~BlockRefs();

  void push(int32_t block) { blocks_.push_back(block); }  // Takes over the caller's name.
  void truncate(size_t count);                            // Releases all behind the first `count`.
  // Puts `block` in place of the last one, whose name passes to the caller.
  int32_t exchange_last(int32_t block);
  void reserve(size_t count) { blocks_.reserve(count); }

  size_t size() const { return blocks_.size(); }
  int32_t operator[](size_t index) const { return blocks_[index]; }
  const int32_t* data() const { return blocks_.data(); }

 private:
  Pool* pool_;
  std::vector<int32_t> blocks_;
};

// The recurrent states of all groups at one position.
struct Anchor {
  int32_t position = 0;
  std::vector<BlockRefs> states;  // One block for each recurrent group, in the order of groups.
};

class Sequence {
 public:
  int32_t length() const { return int32_t(tokens_.size()); }
  std::span<const Token> tokens() const { return tokens_; }
  std::span<const Anchor> anchors() const { return anchors_; }

 private:
  friend class Memory;
  friend class Transaction;
  Sequence() = default;

  std::vector<Token> tokens_;
  std::vector<BlockRefs> pages_;   // One for each full group, in the order of groups.
  std::vector<BlockRefs> states_;  // Likewise recurrent: one block, or none at position 0.
  std::vector<Anchor> anchors_;
};

}  // namespace cairn::memory
