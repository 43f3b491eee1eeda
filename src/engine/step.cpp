// One step: replays, room, rows, commits.
#include "engine/step.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/trace/trace.h"

namespace cairn {

namespace {

constexpr std::string_view kEngineThread = "engine";  // In traces.

// Of one sequence only: those before it in the step are computed.
bool is_full(const Error& error) {
  return error.code == ErrorCode::memory_full || error.code == ErrorCode::context_full;
}

}  // namespace

Stepper::Stepper(memory::Memory* memory, memory::PrefixCache* cache, Runner* runner, Trace* trace)
    : memory_(memory), cache_(cache), runner_(runner), trace_(trace) {
  const size_t item_count_max = size_t(runner->row_count_max());
  transactions_.reserve(item_count_max);
  computations_.reserve(item_count_max);
  replays_.reserve(item_count_max);
  parts_.reserve(item_count_max);
  computed_.reserve(item_count_max);
}

Result<StepReport> Stepper::step(std::span<const StepItem> items, StepAcceptor accept,
                                 StepObserver observe, StepGivenUp is_given_up) {
  TraceSpan span(trace_, kEngineThread, "step");
  Result<StepReport> made = make(items, accept, observe, is_given_up);
  if (trace_ == nullptr || !made) return made;
  const int64_t answer_rows = made->answer_rows;
  const int64_t prompt_rows = made->computed_rows - answer_rows;
  span.rename(prompt_rows == 0 ? "decode" : answer_rows == 0 ? "prompt" : "prompt and decode");
  span.add("sequences", int64_t(made->item_count));
  span.add("decode_rows", answer_rows);
  span.add("prompt_rows", prompt_rows);
  span.add("replayed_rows", made->replayed_rows);
  return made;
}

Result<StepReport> Stepper::make(std::span<const StepItem> items, StepAcceptor accept,
                                 StepObserver observe, StepGivenUp is_given_up) {
  CHECK(!items.empty());
  StepReport report;
  CAIRN_TRY(const size_t awake_count, replay(items.first(fitting_items(items)), report));
  for (const StepItem& item : items.first(awake_count)) {
    Status begun = begin(item);
    if (begun) continue;
    if (!transactions_.empty() && is_full(begun.error())) break;
    transactions_.clear();
    return std::move(begun).error();
  }
  report.item_count = transactions_.size();
  memory_->expect_states(int32_t(report.item_count));
  const auto computed = items.first(report.item_count);
  computations_.clear();
  for (size_t item = 0; item < computed.size(); ++item) {
    const int32_t rows = int32_t(transactions_[item].tokens().size());
    report.computed_rows += rows;
    if (computed[item].is_answer) report.answer_rows += rows;
    computations_.push_back(transactions_[item].variant().computation);
  }
  for (size_t item = 0; item < computed.size(); ++item) {
    const auto end = computations_.begin() + std::ptrdiff_t(item);
    const bool is_first = std::find(computations_.begin(), end, computations_[item]) == end;
    if (!is_first) continue;
    if (!compute(computed, computations_[item], accept, is_given_up)) {
      transactions_.clear();
      return fail(ErrorCode::cancelled, "step: given up");
    }
    observe(computed_);
  }
  transactions_.clear();
  return report;
}

// Those that the runner can take together.
size_t Stepper::fitting_items(std::span<const StepItem> items) const {
  size_t row_count = 0, output_count = 0, count = 0;
  for (const StepItem& item : items) {
    row_count += item.tokens.size();
    output_count += item.outputs.size();
    const bool fits = row_count <= size_t(runner_->row_count_max()) &&
                      output_count <= size_t(runner_->output_count_max());
    if (!fits) break;
    ++count;
  }
  CHECK(count > 0);
  return count;
}

// Brings back the states of suspended sequences; of how many leading items there is room for that.
Result<size_t> Stepper::replay(std::span<const StepItem> items, StepReport& report) {
  size_t count = 0;
  Status status = Ok{};
  for (const StepItem& item : items) {
    if (memory_->needs_replay(*item.sequence)) {
      Result<memory::Replay> begun =
          cache_->begin_replay(*item.sequence, runner_->replay_rows_max(), item.spares_shares);
      if (!begun) {
        status = std::move(begun).error();
        break;
      }
      report.replayed_rows += begun->row_count();
      replays_.push_back(std::move(begun).value());
    }
    ++count;
  }
  if (!replays_.empty()) {
    TraceSpan span(trace_, kEngineThread, "replay");
    span.add("rows", report.replayed_rows);
    runner_->replay(replays_);
  }
  for (memory::Replay& replay : replays_) replay.commit();
  replays_.clear();
  if (count == 0) return std::move(status).error();
  return count;
}

Status Stepper::begin(const StepItem& item) {
  if (item.anchors_start) {
    CAIRN_TRY(memory_->keep_anchor(*item.sequence, memory::AnchorKind::message_start));
  }
  CAIRN_TRY(memory::Transaction transaction, begin_transaction(item));
  transactions_.push_back(std::move(transaction));
  return Ok{};
}

// Where there is no room for drafts, or for states on the way, it goes on without them: first
// without the closing one, which is behind the others and worth least.
Result<memory::Transaction> Stepper::begin_transaction(const StepItem& item) {
  memory::StepRequest request{.tokens = item.tokens,
                              .captures = item.captures,
                              .capture_kinds = item.capture_kinds,
                              .keeps_hidden = item.keeps_hidden};
  for (;;) {
    Result<memory::Transaction> begun = cache_->begin(*item.sequence, request, item.spares_shares);
    const bool has_room = begun || begun.error().code != ErrorCode::memory_full;
    if (has_room) return begun;
    const size_t plain_count = item.tokens.size() - size_t(item.draft_count);
    if (request.tokens.size() > plain_count) {
      request.tokens = item.tokens.first(plain_count);
      continue;
    }
    if (request.captures.empty()) return begun;
    std::span<const memory::AnchorKind>& kinds = request.capture_kinds;
    const bool has_closing = !kinds.empty() && kinds.back() == memory::AnchorKind::closing;
    const size_t kept_count = has_closing ? kinds.size() - 1 : 0;
    request.captures = request.captures.first(kept_count);
    kinds = kinds.first(kept_count);
  }
}

// The rows of all items of one variant, whosever they are: a variant has plans of its own.
bool Stepper::compute(std::span<const StepItem> items, uint64_t computation, StepAcceptor accept,
                      StepGivenUp is_given_up) {
  parts_.clear();
  computed_.clear();
  for (size_t i = 0; i < items.size(); ++i) {
    if (computations_[i] != computation) continue;
    parts_.push_back({.transaction = &transactions_[i],
                      .outputs = outputs_of(items[i], i),
                      .given = items[i].given,
                      .is_answer = items[i].is_answer});
    computed_.push_back(i);
  }
  if (!runner_->run(parts_, is_given_up)) return false;
  int32_t first_output = 0;
  for (size_t part = 0; part < parts_.size(); ++part) {
    const size_t i = computed_[part];
    accept_rows(parts_[part], items[i], i, first_output, accept);
    first_output += int32_t(parts_[part].outputs.size());
  }
  return true;
}

// Without those of drafts for which there was no room.
std::span<const int32_t> Stepper::outputs_of(const StepItem& item, size_t index) const {
  const size_t left_out = item.tokens.size() - transactions_[index].tokens().size();
  return item.outputs.first(item.outputs.size() - left_out);
}

void Stepper::accept_rows(const BatchPart& part, const StepItem& item, size_t index,
                          int32_t first_output, StepAcceptor accept) {
  const StepOutputs outputs(runner_, first_output, int32_t(part.outputs.size()));
  const int32_t accepted = accept(index, outputs);
  if (accepted == 0) return;  // Undone when the transaction goes.
  if (item.keeps_hidden) {
    const auto output = std::find(part.outputs.begin(), part.outputs.end(), accepted - 1);
    CHECK(output != part.outputs.end());
    runner_->keep_hidden(transactions_[index],
                         first_output + int32_t(output - part.outputs.begin()));
  }
  transactions_[index].commit(accepted);
}

}  // namespace cairn
