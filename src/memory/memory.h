// What the engine keeps of conversations, exact and rewindable (docs/memory.md). One Memory for a
// loaded model: pools of pages and states under one byte budget. Sequences are values; they change
// only through transactions, which happen in all groups or in none.
// Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/step.h"
#include "memory/layout.h"
#include "memory/pool.h"
#include "memory/sequence.h"

namespace cairn::memory {

struct Options {
  size_t budget_bytes = 0;
  int32_t context_tokens_max = 0;  // The longest sequence.
};

// What going to a position costs.
struct RewindPlan {
  int32_t target = 0;           // Where the caller wants to go.
  int32_t resume = 0;           // Where every group can go on from: at most target.
  int32_t forward_tokens = 0;   // target - resume: tokens to compute again.
  std::string_view limited_by;  // The kind of state that made resume < target; else empty.
};

struct Usage {
  size_t page_bytes = 0;
  size_t state_bytes = 0;
  size_t budget_bytes = 0;
};

// What a transaction takes and shows to a step. Blocks here are named once, by the transaction.
struct TransactionWork {
  std::vector<Token> tokens;
  std::vector<size_t> old_page_counts;          // By full group.
  std::vector<int32_t> replaced_tails;          // By full group: the tail that was copied, or -1.
  std::vector<int32_t> capture_counts;          // Ascending; the last one is all tokens.
  std::vector<int32_t> captured_states;         // [capture][recurrent group]
  std::vector<const PageId*> page_tables;       // By group.
  std::vector<const std::byte*> states_before;  // By group.
  std::vector<std::byte*> states_after;         // [capture][group]
  std::vector<Capture> captures;
};

class Transaction;

class Memory {
 public:
  static Result<std::unique_ptr<Memory>> create(Layout layout, const Options& options);

  Sequence new_sequence();

  RewindPlan plan(const Sequence& sequence, int32_t position) const;
  // A sequence at plan(sequence, position).resume; `sequence` stays as it is.
  // REQUIRES: 0 <= position <= sequence.length().
  Sequence at(const Sequence& sequence, int32_t position);

  // Room for `tokens` behind `sequence`, in all groups: or no_room, and nothing has changed.
  // `captures`: after how many of the tokens the state is kept for commits and anchors, ascending;
  // the end is always captured.
  // The sequence must not be copied, changed or destroyed before the transaction is.
  Result<Transaction> begin(Sequence& sequence, std::span<const Token> tokens,
                            std::span<const int32_t> captures = {});

  // Keeps the live state as an anchor: a reference, no copy.
  void keep_anchor(Sequence& sequence);
  // Lets go of the oldest anchors beyond `count_max`.
  void limit_anchors(Sequence& sequence, size_t count_max);

  const Layout& layout() const { return layout_; }
  Usage usage() const;
  void trim();  // Gives free blocks back to the system.

 private:
  friend class Transaction;
  Memory(Layout layout, const Options& options);

  Layout layout_;
  Options options_;
  Ledger ledger_;
  std::vector<std::unique_ptr<Pool>> pools_;  // By group.
  std::vector<int32_t> full_groups_, recurrent_groups_;
  std::vector<std::unique_ptr<TransactionWork>> idle_work_;
};

// Tokens on their way into a sequence. Without commit, destroying it leaves the sequence as it was.
class Transaction {
 public:
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  // The sequence's rows for a step; first_row is the caller's. Valid until commit.
  Slice slice(int32_t first_row) const;
  std::span<const Token> tokens() const { return work_->tokens; }

  // The first `accepted` tokens become part of the sequence. REQUIRES: accepted is 0, all, or, if
  // the model has recurrent layers, one of the captures. Captures below it become anchors.
  void commit(int32_t accepted);

 private:
  friend class Memory;
  Transaction(Memory* memory, Sequence* sequence, std::span<const Token> tokens,
              std::span<const int32_t> captures);
  bool take_pages();
  bool take_states();
  void prepare_views();
  void adopt_states(size_t capture);
  void undo();
  void finish();

  Memory* memory_;
  Sequence* sequence_;                     // Null once committed, undone or moved from.
  std::unique_ptr<TransactionWork> work_;  // Goes back, so that steps allocate nothing.
};

}  // namespace cairn::memory
