// Appends tokens to a sequence, in all groups of layers or in none: blocks are allocated first,
// then the step computes, then one commit. Neither commit nor rollback can fail. On recurrent
// models a short transaction also writes the log, so that any number of its tokens can be accepted,
// as speculative decoding needs. Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/step.h"
#include "memory/anchor_kind.h"
#include "memory/sequence.h"
#include "memory/store.h"

namespace cairn::memory {

struct StepRequest {
  std::span<const Token> tokens;
  // After how many of the tokens an anchor is kept, ascending; recurrent kernels store the state
  // there on their way. The state after all tokens is always stored, without an anchor.
  std::span<const int32_t> captures = {};
  // What these anchors are, one for each; none: starts of messages.
  std::span<const AnchorKind> capture_kinds = {};
  bool keeps_hidden = false;  // The caller writes Transaction::hidden() before it commits.
};

// What a page table was before a transaction.
struct TableEdit {
  int32_t old_size = 0;
  bool replaced_tail = false;
  PageId old_tail = kNoPage;  // Referenced here while a copy, or a hole, is in its place.
};

// What a transaction has allocated, and the arrays that a step reads. Only the transaction refers
// to these states and rows.
struct TransactionWork {
  std::vector<Token> tokens;
  std::vector<TableEdit> edits;         // By group.
  std::vector<int32_t> capture_counts;  // Ascending; the last one is all tokens.
  std::vector<AnchorKind> capture_kinds;
  std::vector<BlockRef> captured_states;
  BlockRef hidden;
  std::vector<const PageId*> page_tables;       // By group.
  std::vector<const std::byte*> states_before;  // By group.
  std::vector<std::byte*> states_after;         // [capture][group]
  std::vector<Capture> captures;
};

class Transaction {
 public:
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();  // Rolls back unless committed.

  // The sequence's rows for a step; first_row is the caller's. Valid until commit.
  Slice slice(int32_t first_row) const;
  std::span<const Token> tokens() const { return work_->tokens; }
  Variant variant() const { return sequence_->variant(); }  // REQUIRES: not committed.
  // The last hidden row after the tokens that will be accepted: [hidden width] in f32; does not
  // exist where the request did not ask for it.
  DeviceBytes hidden();

  // The first `accepted` tokens become part of the sequence. Requested captures among them become
  // anchors.
  // REQUIRES: can_accept(accepted).
  void commit(int32_t accepted);
  // Any number up to all; where recurrent layers are not logged, 0, a capture, or all.
  bool can_accept(int32_t accepted) const;

 private:
  friend class Memory;
  Transaction(Sequence* sequence, const StepRequest& request);

  size_t needed_bytes() const;
  bool take_blocks();
  bool extend_table(int32_t group);
  bool own_tail(int32_t group);
  void prepare_views();
  void take_over_states(int32_t accepted);
  void undo();
  void finish();

  Store* store_;
  Sequence* sequence_;  // Null once committed, undone or moved from.
  std::unique_ptr<TransactionWork> work_;
  size_t requested_captures_;
  bool is_logged_, keeps_hidden_;
};

}  // namespace cairn::memory
