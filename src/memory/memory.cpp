// The entrance: checks what callers ask for, and hands on to sequences, transactions and the store.
#include "memory/memory.h"

#include <algorithm>
#include <utility>

namespace cairn::memory {

namespace {

Error closed_error() {
  return fail(ErrorCode::invalid_argument, "sequence: expected an open one, found a closed one");
}

Error suspended_error() {
  return fail(ErrorCode::invalid_argument,
              "sequence: expected its state, found it suspended; it has to be replayed first");
}

Status check_captures(std::span<const int32_t> captures, size_t token_count) {
  int32_t previous = 0;
  for (const int32_t count : captures) {
    if (count <= previous || size_t(count) > token_count) {
      return fail(ErrorCode::invalid_argument,
                  "captures: expected ascending counts from 1 to {}, found {} after {}",
                  token_count, count, previous);
    }
    previous = count;
  }
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<Memory>> Memory::create(Layout layout, const Options& options,
                                               DeviceMemory& device) {
  CAIRN_TRY(std::unique_ptr<Store> store, Store::create(std::move(layout), options, device));
  return std::unique_ptr<Memory>(new Memory(std::move(store)));
}

Result<Sequence> Memory::at(const Sequence& sequence, int32_t position) const {
  if (sequence.is_closed()) return closed_error();
  if (position < 0 || position > sequence.length()) {
    return fail(ErrorCode::invalid_argument, "position: expected one from 0 to {}, found {}",
                sequence.length(), position);
  }
  std::vector<int32_t> states;
  const Resolution resolution = resolve(holdings(sequence, states), position);
  Sequence result = sequence;
  result.cut(resolution.position);
  return result;
}

Result<Sequence> Memory::fork(const Sequence& sequence) const {
  if (sequence.is_closed()) return closed_error();
  return sequence;
}

void Memory::close(Sequence& sequence) {
  sequence = Sequence();
  const Usage left = usage();
  if (left.used_bytes() == left.other_bytes) store_->trim_to_kept();
}

Result<Transaction> Memory::begin(Sequence& sequence, const StepRequest& request) {
  if (sequence.is_closed()) return closed_error();
  if (sequence.is_suspended()) return suspended_error();
  if (request.tokens.empty()) {
    return fail(ErrorCode::invalid_argument, "tokens: expected at least one, found none");
  }
  CAIRN_TRY(check_captures(request.captures, request.tokens.size()));
  CHECK(request.capture_kinds.empty() || request.capture_kinds.size() == request.captures.size());
  const int64_t length = int64_t(sequence.length()) + int64_t(request.tokens.size());
  if (length > options().context_tokens_max) {
    return fail(ErrorCode::context_full, "context: {} tokens are needed, {} fit", length,
                options().context_tokens_max);
  }
  Transaction transaction(&sequence, request);
  const size_t needed_bytes = transaction.needed_bytes();
  if (needed_bytes > store_->available_bytes() || !transaction.take_blocks()) {
    return fail(ErrorCode::memory_full,
                "memory budget: {} tokens more need {} bytes, {} of {} bytes are free",
                request.tokens.size(), needed_bytes, store_->available_bytes(),
                options().budget_bytes);
  }
  transaction.prepare_views();
  return transaction;
}

bool Memory::needs_replay(const Sequence& sequence) const {
  return !sequence.is_closed() && sequence.is_suspended();
}

Result<Replay> Memory::begin_replay(Sequence& sequence, int32_t piece_rows) {
  if (sequence.is_closed()) return closed_error();
  if (!sequence.is_suspended()) {
    return fail(ErrorCode::invalid_argument,
                "replay: expected a sequence without its state, found one that has it");
  }
  Replay replay(&sequence, piece_rows);
  if (replay.needed_bytes() > store_->available_bytes() || !replay.take_blocks()) {
    return fail(ErrorCode::memory_full,
                "memory budget: deriving a state needs {} bytes, {} of {} bytes are free",
                replay.needed_bytes(), store_->available_bytes(), options().budget_bytes);
  }
  return replay;
}

bool Memory::suspend(Sequence& sequence) {
  if (!can_suspend(sequence)) return false;
  sequence.state_.reset();
  return true;
}

bool Memory::can_suspend(const Sequence& sequence, const BlockCounts* among) const {
  if (sequence.is_closed() || !sequence.state_) return false;
  return ref_count(layout().recurrent_group, sequence.state_, among) == 1 &&
         sequence.log_derives_end(SIZE_MAX);
}

Status Memory::keep_anchor(Sequence& sequence, AnchorKind kind) {
  if (sequence.is_closed()) return closed_error();
  if (sequence.is_suspended()) return suspended_error();
  if (sequence.length() == 0) return Ok{};
  sequence.add_anchor({.position = sequence.length(),
                       .kind = kind,
                       .state = sequence.state_,
                       .hidden = sequence.hidden_});
  return Ok{};
}

Status Memory::drop_anchor(Sequence& sequence, size_t index) {
  if (sequence.is_closed()) return closed_error();
  if (index >= sequence.anchors_.size()) {
    return fail(ErrorCode::invalid_argument, "anchor: expected an index below {}, found {}",
                sequence.anchors_.size(), index);
  }
  if (sequence.is_suspended() && !sequence.log_derives_end(index)) {
    return fail(ErrorCode::invalid_argument,
                "anchor {}: expected one that can go, found the state that is replayed from",
                index);
  }
  sequence.anchors_.erase(sequence.anchors_.begin() + std::ptrdiff_t(index));
  sequence.trim_log();
  sequence.drop_unneeded_pages();
  return Ok{};
}

void Memory::protect_from(Sequence& sequence, int32_t position) {
  if (sequence.is_closed()) return;
  sequence.protected_from_ = std::max(position, 0);
  sequence.drop_unneeded_pages();
}

DeviceBytes Memory::hidden(const Sequence& sequence) const {
  if (!sequence.hidden_) return {};
  return {sequence.hidden_.address(), layout().hidden_bytes()};
}

}  // namespace cairn::memory
