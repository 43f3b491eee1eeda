// The recurrent state of a suspended sequence, computed from an earlier state and the logged
// inputs: the recurrence alone, without weights. The rows may be computed in pieces, in their
// order. Without commit the sequence stays suspended. Not thread-safe: the engine's thread owns it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "device/step.h"
#include "memory/sequence.h"
#include "memory/transaction.h"

namespace cairn::memory {

class Replay {
 public:
  Replay(Replay&& other) noexcept;
  Replay& operator=(Replay&&) = delete;
  ~Replay();

  int32_t row_count() const { return row_count_; }          // Of all pieces.
  Variant variant() const { return sequence_->variant(); }  // REQUIRES: not committed.
  int32_t piece_count() const { return (row_count_ + piece_rows_ - 1) / piece_rows_; }
  int32_t piece_row_count(int32_t piece) const {
    return std::min(piece_rows_, row_count_ - piece * piece_rows_);
  }
  // One piece for a step; first_row is the caller's. Each piece goes on from the state that the one
  // before it stored. Valid until the next call.
  // REQUIRES: pieces are taken, and computed, in their order.
  Slice slice(int32_t piece, int32_t first_row);

  // The state becomes the sequence's live state. REQUIRES: all pieces have been computed.
  void commit();

 private:
  friend class Memory;
  Replay(Sequence* sequence, int32_t piece_rows);
  bool take_blocks();
  size_t needed_bytes() const;
  void finish();

  Store* store_;
  Sequence* sequence_;  // Null once committed or moved from.
  std::unique_ptr<TransactionWork> work_;
  int32_t first_position_ = 0, row_count_ = 0, piece_rows_ = 1;
};

}  // namespace cairn::memory
