// The pools of one memory under one byte budget. All blocks are allocated here. Knows nothing of
// sequences. Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "memory/layout.h"
#include "memory/ledger.h"
#include "memory/pool.h"
#include "memory/variant.h"

namespace cairn::memory {

struct Options {
  size_t budget_bytes = 0;
  int32_t context_tokens_max = 0;  // The longest sequence.
  int32_t log_step = 0;  // A state is replayed in at most so many steps; 0: chosen by its size.
  int32_t log_tokens_max = 0;                // The log's length; 0: twice the step.
  bool poisons = false;                      // For tests: see Pool::Options.
  Variant default_variant = Variant::plain;  // Of sequences that are made without a variant.
};

struct Usage {
  size_t page_bytes = 0;
  size_t state_bytes = 0;
  size_t hidden_bytes = 0;
  size_t log_bytes = 0;
  size_t other_bytes = 0;  // What is no block and lives within the budget: plans of adapters.
  size_t warm_bytes = 0;   // Free blocks kept ready; they give way where room is needed.
  size_t budget_bytes = 0;

  size_t used_bytes() const {
    return page_bytes + state_bytes + hidden_bytes + log_bytes + other_bytes;
  }
};

// Pages of all groups that have them, each once; a free one that is not warm is none.
struct PageCounts {
  int64_t unshared = 0;  // One reference.
  int64_t shared = 0;
  int64_t warm = 0;

  friend bool operator==(const PageCounts&, const PageCounts&) = default;
};

// What became of anchors, but for the memory's own tails; never less.
struct SnapshotCounts {
  int64_t created = 0;
  int64_t restored = 0;  // Prompts that went on from one.
  int64_t evicted = 0;   // Lost by kept sequences to make room; those that share one lose one each.
};

struct TransactionWork;

class Store {
 public:
  // Errors: a budget that does not hold a block of each group and a second state.
  // `device`, which outlives the store, has the blocks.
  static Result<std::unique_ptr<Store>> create(Layout layout, const Options& options,
                                               DeviceMemory& device);
  ~Store();

  const Layout& layout() const { return layout_; }
  const Options& options() const { return options_; }
  int32_t group_count() const { return int32_t(layout_.groups.size()); }
  const GroupSpec& spec(int32_t group) const { return layout_.groups[size_t(group)]; }
  Pool& pool(int32_t group) { return *pools_[size_t(group)]; }
  const Pool& pool(int32_t group) const { return *pools_[size_t(group)]; }
  bool has_states() const { return layout_.recurrent_group >= 0; }
  bool has_log() const { return layout_.log_group >= 0; }
  // Transactions of at most so many tokens are logged; 0 without a log.
  int32_t log_step() const { return has_log() ? options_.log_step : 0; }

  // A block with one reference, for a tenant, or kNoPage. Warm blocks of other groups make room.
  PageId take(int32_t group, uint64_t tenant);
  // Counts bytes that somebody else allocates within the budget, before that is done; false where
  // there is no room. Warm blocks make room.
  bool take_others(size_t bytes);
  void give_back_others(size_t bytes);
  size_t available_bytes() const;
  Usage usage() const;
  PageCounts page_counts() const;
  SnapshotCounts& snapshot_counts() { return snapshot_counts_; }
  const Ledger& ledger() const { return ledger_; }
  // What the system backs at most. Beside the budget, a slab of each group may be begun.
  size_t resident_bytes() const;
  void trim();
  void trim_to_kept();
  // Keeps so many states ready even where no sequence is open, as large ones take long to be
  // cleared, and the log of one sequence once it is there. They give way where room is needed.
  void keep_states_warm(int32_t count);
  // A step takes a state for each of so many sequences before it lets go of one: as many stay warm
  // while steps are that wide, so that none is cleared by the system anew.
  void expect_states(int32_t count);

  // The allocation after the next `count` ones fails, once: so tests reach every way to run out of
  // memory.
  void refuse_after(int64_t count) { takes_left_ = count; }

  // Buffers of finished transactions, so that steps allocate nothing.
  std::unique_ptr<TransactionWork> borrow_work();
  void return_work(std::unique_ptr<TransactionWork> work);

 private:
  Store(Layout layout, const Options& options, DeviceMemory& device);
  Status check_budget() const;
  Result<Pool> create_pool(const GroupSpec& spec, int32_t warm_count_max);
  void keep_within_budget();

  DeviceMemory& device_;
  Layout layout_;
  Options options_;
  Ledger ledger_;
  SnapshotCounts snapshot_counts_;
  size_t other_bytes_ = 0;
  std::vector<std::unique_ptr<Pool>> pools_;  // By group.
  std::vector<std::unique_ptr<TransactionWork>> idle_work_;
  int32_t expected_states_ = 0;  // The most of the last steps that were narrower than before,
  int32_t narrow_steps_ = 0;     // and how many these are.
  int64_t takes_left_ = INT64_MAX;
};

}  // namespace cairn::memory
