// A sequence of tokens and what the model keeps of them. A value: copying it forks (references, no
// bytes); a copy that is left alone is a snapshot. It grows only through a Transaction. Invariants:
// (1) every group is at position length(); (2) blocks with more than one reference are never
// written; (3) anchors ascend, up to length(); (4) windows hold what protected positions need and
// nothing else; (5) a kept state precedes the log, which replays from it; (6) all of it was
// computed by one variant. Not thread-safe; must not outlive its Memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "memory/anchor_kind.h"
#include "memory/page_table.h"
#include "memory/resolver.h"
#include "memory/store.h"
#include "memory/token_list.h"
#include "memory/variant.h"

namespace cairn::memory {

// A checkpoint: a position that one can always go back to. Its pages stay, and it refers to its
// recurrent state and hidden row if the model has them.
struct Anchor {
  int32_t position = 0;
  AnchorKind kind = AnchorKind::message_start;
  BlockRef state;   // None on models without recurrent layers.
  BlockRef hidden;  // None unless it was requested.
};

class Sequence {
 public:
  Sequence() = default;  // Closed: only to be assigned to.
  Sequence(const Sequence&) = default;
  Sequence(Sequence&& other) noexcept;  // The other is closed then.
  Sequence& operator=(Sequence other) noexcept;
  ~Sequence() = default;

  bool is_closed() const { return store_ == nullptr; }
  int32_t length() const { return tokens_.size(); }
  Variant variant() const { return variant_; }  // Stays with copies, however short.
  std::span<const Token> tokens() const { return tokens_.view(); }
  std::span<const Anchor> anchors() const { return anchors_; }
  int32_t protected_from() const { return protected_from_; }
  // Positions [log_begin(), length()] have inputs of the recurrence in the log.
  int32_t log_begin() const { return log_begin_; }
  bool has_live_state() const { return bool(state_); }
  bool has_hidden() const { return bool(hidden_); }

 private:
  friend class Memory;
  friend class Transaction;
  friend class Replay;
  friend class BlockCounts;
  friend class SequenceMap;
  friend class Archive;
  friend class Assembly;
  friend class Inspector;  // Tests look at references and pages.

  Sequence(Store* store, Variant variant);

  // The recurrent state at length() is not held: it must be replayed from the log.
  bool is_suspended() const { return store_->has_states() && length() > 0 && !state_; }
  // The state from which length() is replayed: an anchor's index, or -1 for the zeros at the
  // beginning. REQUIRES: the log reaches length().
  int32_t base_anchor() const;
  bool log_derives_end(size_t without_anchor) const;
  // The anchor at exactly this position, or null.
  const Anchor* anchor_at(int32_t position) const;

  void cut(int32_t length);  // REQUIRES: the resolver's answer.
  void add_anchor(Anchor anchor);
  void trim_log();
  void drop_spare_tails();
  void drop_unneeded_pages();
  void drop_unneeded_pages(int32_t group);

  Store* store_ = nullptr;
  Variant variant_ = Variant::plain;
  TokenList tokens_;
  std::vector<PageTable> tables_;  // By group; empty for groups without pages.
  BlockRef state_;                 // At length(); none at position 0 and while suspended.
  BlockRef hidden_;                // At length(), if it was requested.
  std::vector<Anchor> anchors_;
  int32_t log_begin_ = 0;       // length() where nothing is logged.
  int32_t protected_from_ = 0;  // Windows: this position and all later ones stay resumable.
};

}  // namespace cairn::memory
