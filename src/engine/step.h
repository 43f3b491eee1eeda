// Steps: a batch of tokens of one sequence or several goes through the model. Everything is
// computed by Engine::step(): suspended states are replayed, blocks are allocated, rows are
// computed, hidden rows kept, tokens committed. Rows of different adapters may share a step.
// Schedules nothing. Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "engine/runner.h"
#include "memory/cache/prefix_cache.h"
#include "memory/memory.h"

namespace cairn {

class Trace;

// The rows of one sequence. Its arrays must stay until the step has been made.
struct StepItem {
  memory::Sequence* sequence = nullptr;  // Comes once in a step.
  std::span<const Token> tokens;         // Appended to it; at least one.
  // Indices of the tokens whose logits are wanted, ascending.
  std::span<const int32_t> outputs = {};
  // The last tokens, which are drafts: the rows are computed only where there is room for them too.
  // All tokens are outputs then.
  int32_t draft_count = 0;
  // After how many of the tokens an anchor is kept, ascending, and what these anchors are (none:
  // starts of messages). Left out where there is no room.
  std::span<const int32_t> captures = {};
  std::span<const memory::AnchorKind> capture_kinds = {};
  bool anchors_start = false;  // The end before these tokens is kept as an anchor too.
  // Keeps the hidden row of the last accepted token with the sequence, so that its logits can be
  // computed again. REQUIRES: the token is among the outputs, if any is accepted.
  bool keeps_hidden = false;
  std::span<const float> given = {};  // As BatchPart has them.
  bool spares_shares = false;   // Of other tenants, where room is made: as PrefixCache has it.
  bool others_wait = false;     // Jobs that are not in this step: then no slow disk is waited for.
  bool is_answer = false;       // Rows of an answer; else of a prompt, which fast-1 rounds more.
  bool is_tried_again = false;  // Where memory is short: a step alone waits for no disk either.
};

// The rows of one item, in the order of its outputs; valid until the runner computes again.
class StepOutputs {
 public:
  StepOutputs(const Runner* runner, int32_t first, int32_t count)
      : runner_(runner), first_(first), count_(count) {}

  int32_t count() const { return count_; }
  std::span<const float> logits(int32_t output) const { return runner_->logits(first_ + output); }
  std::span<const float> hidden(int32_t output) const { return runner_->hidden(first_ + output); }
  int32_t first() const { return first_; }  // Its number among the runner's outputs.
  // Without the first ones. REQUIRES: there are so many.
  StepOutputs without_first(int32_t count) const {
    return {runner_, first_ + count, count_ - count};
  }

 private:
  const Runner* runner_;
  int32_t first_, count_;
};

// Takes the logits of a prompt's tokens while they are read. Thread rule: the engine's thread.
class PromptReader {
 public:
  virtual ~PromptReader() = default;
  // Those of the tokens from `position` on, while they are valid: each token's once, in order.
  virtual void take(int32_t position, const StepOutputs& rows) = 0;
};

// Called once for each item that was computed, by its index, while its outputs are valid; returns
// how many of its tokens become part of the sequence: all, or, where drafts are checked, fewer (see
// memory::Transaction::can_accept). 0 leaves the sequence as it was.
using StepAcceptor = FunctionRef<int32_t(size_t item, const StepOutputs& outputs)>;
// Called after each computation of a step (one for each variant of the model among the items) with
// the indices of the items that were in it: their tokens are part of their sequences, and their
// outputs are valid until it returns.
using StepObserver = FunctionRef<void(std::span<const size_t> items)>;
inline void observe_nothing(std::span<const size_t>) {}

// Asked often while a step is computed: true ends it with the error `cancelled`.
using StepGivenUp = std::optional<FunctionRef<bool()>>;

struct StepReport {
  size_t item_count = 0;      // The items, from the first, that were computed; at least one.
  int32_t replayed_rows = 0;  // Recurrence steps that replayed states, for all items.
  int32_t computed_rows = 0;  // Tokens of the items,
  int32_t answer_rows = 0;    // and of those that are of answers.
};

class Stepper {
 public:
  // `trace`: null: none.
  Stepper(memory::Memory* memory, memory::PrefixCache* cache, Runner* runner,
          Trace* trace = nullptr);

  // Computes the leading items for which there are rows, outputs and bytes; the prefix cache evicts
  // what is worth least to make room. Errors: those of Memory::begin() and of replaying; no token
  // was computed then; cancelled, if it was given up: what it had computed is undone.
  // REQUIRES: at least one item; the first is within the runner's limits.
  Result<StepReport> step(std::span<const StepItem> items, StepAcceptor accept,
                          StepObserver observe = observe_nothing,
                          StepGivenUp is_given_up = std::nullopt);

 private:
  Result<StepReport> make(std::span<const StepItem> items, StepAcceptor accept,
                          StepObserver observe, StepGivenUp is_given_up);
  size_t fitting_items(std::span<const StepItem> items) const;
  Result<size_t> replay(std::span<const StepItem> items, StepReport& report);
  Status begin(const StepItem& item);
  Result<memory::Transaction> begin_transaction(const StepItem& item);
  bool compute(std::span<const StepItem> items, uint64_t computation, StepAcceptor accept,
               StepGivenUp is_given_up);
  std::span<const int32_t> outputs_of(const StepItem& item, size_t index) const;
  void accept_rows(const BatchPart& part, const StepItem& item, size_t index, int32_t first_output,
                   StepAcceptor accept);

  memory::Memory* memory_;
  memory::PrefixCache* cache_;
  Runner* runner_;
  Trace* trace_;
  // Empty between steps; their capacity stays, so that steps allocate nothing.
  std::vector<memory::Transaction> transactions_;
  std::vector<uint64_t> computations_;  // Of the items' variants, which commits hide.
  std::vector<memory::Replay> replays_;
  std::vector<BatchPart> parts_;
  std::vector<size_t> computed_;  // The items of the computation.
};

}  // namespace cairn
