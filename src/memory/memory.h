// The KV cache and recurrent states of a loaded model (docs/memory.md): pools of pages, states and
// hidden rows under one byte budget. Sequences are values; they grow only through transactions,
// which change all groups of layers or none. Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/step.h"
#include "memory/cache/block_counts.h"
#include "memory/layout.h"
#include "memory/replay.h"
#include "memory/sequence.h"
#include "memory/store.h"
#include "memory/transaction.h"

namespace cairn::memory {

// What going to a position costs.
struct ResumePlan {
  int32_t target = 0;            // The position that the caller wants.
  int32_t resume = 0;            // The last position up to target that every group can resume.
  int32_t forward_tokens = 0;    // target - resume: tokens to read (again).
  int32_t recurrence_steps = 0;  // Replayed from the log before them, without weights.
  size_t copied_bytes = 0;       // At most: copy on write of pages that others share.
  size_t new_bytes = 0;          // At most: blocks taken for the tokens to read, with the copies.
  std::string_view limited_by;   // "window", "chunked", "recurrent", "hidden", or nothing.
  std::string reason;            // limited_by for people, as a sentence.
  bool logits_ready = false;     // The hidden row at target is held: nothing has to be read.
};

struct PositionRun {
  int32_t begin = 0, end = 0;  // [begin, end)
};

// What one sequence holds of one group.
struct GroupUsage {
  GroupKind kind = GroupKind::full;
  int32_t window = 0;
  int32_t tokens = 0;                   // Positions whose pages are held; of states and rows, 0.
  int32_t blocks = 0;                   // Pages, states or rows; each once.
  int32_t shared = 0;                   // Those that other sequences refer to as well.
  size_t bytes = 0;                     // Of all of them.
  std::vector<PositionRun> runs = {};   // Of pages: the positions that they hold, ascending.
  std::vector<int32_t> positions = {};  // Of states and rows: the position of each one, ascending.
};

class Memory {
 public:
  // Errors: a budget below a page of each group and two states, with both numbers.
  // `device`, which outlives the memory, has the blocks.
  static Result<std::unique_ptr<Memory>> create(Layout layout, const Options& options,
                                                DeviceMemory& device);

  Sequence new_sequence() { return new_sequence(options().default_variant); }
  Sequence new_sequence(Variant variant) { return Sequence(store_.get(), variant); }

  // What it costs to stand at `position`, which may lie beyond the end (tokens not read yet).
  // `wants_logits`: the last token is read again where the hidden row at `position` is not held.
  ResumePlan plan(const Sequence& sequence, int32_t position, bool wants_logits = false) const;

  // The same plan, up to a later position: what lies behind the old one is read after resuming.
  ResumePlan extended(const Sequence& sequence, ResumePlan plan, int32_t position) const;
  // The positions from 1 on that `sequence` can be resumed at, in runs, descending; none if closed.
  std::vector<ResumableRun> resumable_runs(const Sequence& sequence) const;

  // A sequence at plan(sequence, position).resume; `sequence` stays as it is. The new one is
  // suspended if its recurrent state must be replayed from the log. Errors: a position before the
  // beginning or past the end; closed.
  Result<Sequence> at(const Sequence& sequence, int32_t position) const;
  // The same as copying, but an error where `sequence` is closed.
  Result<Sequence> fork(const Sequence& sequence) const;
  // Releases everything that it holds. Using the sequence later is an error, or a plan that says
  // so.
  void close(Sequence& sequence);

  // Makes room for tokens after `sequence`, in all groups, or changes nothing. Errors: memory_full,
  // context_full, no tokens, captures that do not ascend within them, closed, needs_replay().
  // The sequence must not be copied, changed, moved or destroyed before the transaction is.
  Result<Transaction> begin(Sequence& sequence, const StepRequest& request);

  // The sequence is suspended: its recurrent state must be replayed before begin().
  bool needs_replay(const Sequence& sequence) const;
  // `piece_rows`: how many rows a step can take. Errors: nothing to replay, memory_full.
  Result<Replay> begin_replay(Sequence& sequence, int32_t piece_rows);
  // Releases the live state if it can be replayed from the log and nobody else refers to it;
  // whether it did.
  bool suspend(Sequence& sequence);
  // Whether it would; with `among`, if no references were but those that it counts.
  bool can_suspend(const Sequence& sequence, const BlockCounts* among = nullptr) const;

  // Keeps the end as an anchor, with its state and hidden row: references, no copy. Nothing happens
  // at position 0, which is always there. Errors: closed, needs_replay().
  Status keep_anchor(Sequence& sequence, AnchorKind kind);
  // Errors: no such anchor; the anchor from which a suspended sequence is replayed.
  Status drop_anchor(Sequence& sequence, size_t index);
  // Window pages are kept so that `position` and all later positions can be resumed; older ones
  // only for anchors. 0, the default, keeps everything; what was released does not come back.
  void protect_from(Sequence& sequence, int32_t position);

  // The last hidden row at the end, where it is held: what the output matrix makes logits of.
  DeviceBytes hidden(const Sequence& sequence) const;

  const Layout& layout() const { return store_->layout(); }
  const Options& options() const { return store_->options(); }
  int32_t log_step() const { return store_->log_step(); }
  Usage usage() const { return store_->usage(); }
  PageCounts page_counts() const { return store_->page_counts(); }
  // Who goes on from an anchor, or evicts one, counts it.
  SnapshotCounts& snapshot_counts() { return store_->snapshot_counts(); }
  const Ledger& ledger() const { return store_->ledger(); }
  std::vector<GroupUsage> usage(const Sequence& sequence) const;
  // What would be free if the sequence were closed, or one of its anchors dropped: the blocks that
  // nobody else refers to. With `among`, what would be free if no references were but those that it
  // counts. REQUIRES: it counts the sequence.
  size_t exclusive_bytes(const Sequence& sequence, const BlockCounts* among = nullptr) const;
  size_t anchor_exclusive_bytes(const Sequence& sequence, size_t anchor,
                                const BlockCounts* among = nullptr) const;
  // Gives free blocks back to the system.
  void trim() { store_->trim(); }
  // See Store.
  bool take_others(size_t bytes) { return store_->take_others(bytes); }
  void give_back_others(size_t bytes) { store_->give_back_others(bytes); }
  void keep_states_warm(int32_t count) { store_->keep_states_warm(count); }
  void expect_states(int32_t count) { store_->expect_states(count); }

 private:
  friend class Inspector;  // Tests look at references and pages, and let allocations fail.
  explicit Memory(std::unique_ptr<Store> store) : store_(std::move(store)) {}
  std::vector<Holding> holdings(const Sequence& sequence, std::vector<int32_t>& states) const;
  void add_costs(const Sequence& sequence, ResumePlan& plan) const;

  std::unique_ptr<Store> store_;
};

}  // namespace cairn::memory
