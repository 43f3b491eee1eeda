// Pools, plans and transactions: room first, then the step, then one commit for all groups.
#include "memory/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::memory {

namespace {

int32_t pages_of(int32_t token_count) {
  return (token_count + kPageTokens - 1) / kPageTokens;
}

// How many blocks of a group the budget could ever hold: what the pool reserves addresses for.
int32_t block_count_max(const GroupSpec& group, const Options& options) {
  const size_t by_budget = options.budget_bytes / std::max<size_t>(group.block_bytes(), 1) + 1;
  constexpr size_t kBlocksMax = size_t(1) << 22;
  return int32_t(std::min(by_budget, kBlocksMax));
}

}  // namespace

Memory::Memory(Layout layout, const Options& options)
    : layout_(std::move(layout)), options_(options), ledger_(options.budget_bytes) {}

Result<std::unique_ptr<Memory>> Memory::create(Layout layout, const Options& options) {
  std::unique_ptr<Memory> memory(new Memory(std::move(layout), options));
  const std::vector<GroupSpec>& groups = memory->layout_.groups;
  for (size_t group = 0; group < groups.size(); ++group) {
    CAIRN_TRY(Pool pool, Pool::create(groups[group], block_count_max(groups[group], options),
                                      &memory->ledger_));
    memory->pools_.push_back(std::make_unique<Pool>(std::move(pool)));
    (groups[group].has_pages() ? memory->full_groups_ : memory->recurrent_groups_)
        .push_back(int32_t(group));
  }
  std::vector<int32_t> next_plane(groups.size(), 0);
  for (KvPlane& plane : memory->layout_.kv_planes) {
    const Pool& pool = *memory->pools_[size_t(plane.group)];
    plane.keys = pool.plane(next_plane[size_t(plane.group)]++);
    plane.values = pool.plane(next_plane[size_t(plane.group)]++);
  }
  return memory;
}

Sequence Memory::new_sequence() {
  Sequence sequence;
  const size_t page_count = size_t(pages_of(options_.context_tokens_max));
  sequence.tokens_.reserve(size_t(options_.context_tokens_max));
  for (const int32_t group : full_groups_) {
    sequence.pages_.emplace_back(pools_[size_t(group)].get()).reserve(page_count);
  }
  for (const int32_t group : recurrent_groups_) {
    sequence.states_.emplace_back(pools_[size_t(group)].get());
  }
  return sequence;
}

RewindPlan Memory::plan(const Sequence& sequence, int32_t position) const {
  CHECK(position >= 0 && position <= sequence.length());
  RewindPlan plan{.target = position, .resume = position};
  if (!recurrent_groups_.empty() && position < sequence.length()) {
    plan.resume = 0;
    for (const Anchor& anchor : sequence.anchors_) {
      if (anchor.position <= position) plan.resume = anchor.position;
    }
  }
  plan.forward_tokens = plan.target - plan.resume;
  if (plan.forward_tokens > 0) plan.limited_by = "recurrent";
  return plan;
}

Sequence Memory::at(const Sequence& sequence, int32_t position) {
  const int32_t resume = plan(sequence, position).resume;
  Sequence result = sequence;
  if (resume == sequence.length()) return result;
  result.tokens_.resize(size_t(resume));
  for (BlockRefs& pages : result.pages_) pages.truncate(size_t(pages_of(resume)));
  for (BlockRefs& states : result.states_) states.truncate(0);
  while (!result.anchors_.empty() && result.anchors_.back().position > resume) {
    result.anchors_.pop_back();
  }
  // The anchor stays, so that the same way can be gone again.
  if (resume > 0 && !recurrent_groups_.empty()) result.states_ = result.anchors_.back().states;
  return result;
}

void Memory::keep_anchor(Sequence& sequence) {
  const int32_t length = sequence.length();
  const bool is_kept = !sequence.anchors_.empty() && sequence.anchors_.back().position == length;
  if (recurrent_groups_.empty() || length == 0 || is_kept) return;
  sequence.anchors_.push_back({.position = length, .states = sequence.states_});
}

Result<Transaction> Memory::begin(Sequence& sequence, std::span<const Token> tokens,
                                  std::span<const int32_t> captures) {
  CHECK(!tokens.empty());
  const int64_t length = int64_t(sequence.length()) + int64_t(tokens.size());
  if (length > options_.context_tokens_max) {
    return fail(ErrorCode::no_room, "context: {} tokens are needed, {} fit", length,
                options_.context_tokens_max);
  }
  Transaction transaction(this, &sequence, tokens, captures);
  if (!transaction.take_pages() || !transaction.take_states()) {
    return fail(ErrorCode::no_room,
                "memory budget: {} of {} bytes are in use and {} tokens more "
                "do not fit",
                ledger_.used_bytes(), ledger_.budget_bytes(), tokens.size());
  }
  transaction.prepare_views();
  return transaction;
}

void Memory::limit_anchors(Sequence& sequence, size_t count_max) {
  std::vector<Anchor>& anchors = sequence.anchors_;
  if (anchors.size() <= count_max) return;
  anchors.erase(anchors.begin(), anchors.begin() + std::ptrdiff_t(anchors.size() - count_max));
}

Usage Memory::usage() const {
  Usage usage{.budget_bytes = ledger_.budget_bytes()};
  for (const int32_t group : full_groups_) {
    const Pool& pool = *pools_[size_t(group)];
    usage.page_bytes += size_t(pool.used_count()) * pool.block_bytes();
  }
  for (const int32_t group : recurrent_groups_) {
    const Pool& pool = *pools_[size_t(group)];
    usage.state_bytes += size_t(pool.used_count()) * pool.block_bytes();
  }
  return usage;
}

void Memory::trim() {
  for (const auto& pool : pools_) pool->trim();
}

Transaction::Transaction(Memory* memory, Sequence* sequence, std::span<const Token> tokens,
                         std::span<const int32_t> captures)
    : memory_(memory), sequence_(sequence) {
  if (memory->idle_work_.empty()) {
    work_ = std::make_unique<TransactionWork>();
  } else {
    work_ = std::move(memory->idle_work_.back());
    memory->idle_work_.pop_back();
  }
  const int32_t token_count = int32_t(tokens.size());
  work_->tokens.assign(tokens.begin(), tokens.end());
  work_->capture_counts.assign(captures.begin(), captures.end());
  if (captures.empty() || captures.back() != token_count) {
    work_->capture_counts.push_back(token_count);
  }
  int32_t previous = 0;
  for (const int32_t count : work_->capture_counts) {
    CHECK(count > previous && count <= token_count);
    previous = count;
  }
}

Transaction::Transaction(Transaction&& other) noexcept
    : memory_(other.memory_),
      sequence_(std::exchange(other.sequence_, nullptr)),
      work_(std::move(other.work_)) {}

Transaction::~Transaction() {
  if (sequence_ != nullptr) undo();
}

// The pages that the tokens need, and a copy of the tail page where somebody else names it too.
bool Transaction::take_pages() {
  const int32_t length = sequence_->length();
  const size_t page_count = size_t(pages_of(length + int32_t(work_->tokens.size())));
  for (size_t index = 0; index < sequence_->pages_.size(); ++index) {
    Pool& pool = *memory_->pools_[size_t(memory_->full_groups_[index])];
    BlockRefs& pages = sequence_->pages_[index];
    work_->old_page_counts.push_back(pages.size());
    work_->replaced_tails.push_back(-1);
    if (length % kPageTokens != 0 && pool.is_shared(pages[pages.size() - 1])) {
      const int32_t copy = pool.take();
      if (copy < 0) return false;
      const int32_t tail = pages.exchange_last(copy);
      work_->replaced_tails.back() = tail;
      for (int32_t plane = 0; plane < pool.plane_count(); ++plane) {
        std::memcpy(pool.address(plane, copy), pool.address(plane, tail),
                    pool.plane_block_bytes(plane));
      }
    }
    while (pages.size() < page_count) {
      const int32_t page = pool.take();
      if (page < 0) return false;
      pages.push(page);
    }
  }
  return true;
}

bool Transaction::take_states() {
  for (size_t capture = 0; capture < work_->capture_counts.size(); ++capture) {
    for (const int32_t group : memory_->recurrent_groups_) {
      const int32_t state = memory_->pools_[size_t(group)]->take();
      if (state < 0) return false;
      work_->captured_states.push_back(state);
    }
  }
  return true;
}

void Transaction::prepare_views() {
  const size_t group_count = memory_->pools_.size();
  work_->page_tables.assign(group_count, nullptr);
  work_->states_before.assign(group_count, nullptr);
  work_->states_after.assign(work_->capture_counts.size() * group_count, nullptr);
  for (size_t index = 0; index < sequence_->pages_.size(); ++index) {
    static_assert(sizeof(PageId) == sizeof(int32_t));
    work_->page_tables[size_t(memory_->full_groups_[index])] =
        reinterpret_cast<const PageId*>(sequence_->pages_[index].data());
  }
  const size_t recurrent_count = memory_->recurrent_groups_.size();
  for (size_t index = 0; index < recurrent_count; ++index) {
    const size_t group = size_t(memory_->recurrent_groups_[index]);
    const Pool& pool = *memory_->pools_[group];
    const BlockRefs& before = sequence_->states_[index];
    if (before.size() > 0) work_->states_before[group] = pool.address(0, before[0]);
    for (size_t capture = 0; capture < work_->capture_counts.size(); ++capture) {
      work_->states_after[capture * group_count + group] =
          pool.address(0, work_->captured_states[capture * recurrent_count + index]);
    }
  }
  for (size_t capture = 0; capture < work_->capture_counts.size(); ++capture) {
    work_->captures.push_back({.row_count = work_->capture_counts[capture],
                               .states = work_->states_after.data() + capture * group_count});
  }
}

Slice Transaction::slice(int32_t first_row) const {
  return {.first_row = first_row,
          .row_count = int32_t(work_->tokens.size()),
          .first_position = sequence_->length(),
          .pages = work_->page_tables.data(),
          .states = work_->states_before.data(),
          .captures = work_->captures};
}

// The capture's states become the sequence's live ones.
void Transaction::adopt_states(size_t capture) {
  const size_t recurrent_count = memory_->recurrent_groups_.size();
  for (size_t index = 0; index < recurrent_count; ++index) {
    BlockRefs& live = sequence_->states_[index];
    live.truncate(0);
    live.push(std::exchange(work_->captured_states[capture * recurrent_count + index], -1));
  }
}

void Transaction::commit(int32_t accepted) {
  CHECK(sequence_ != nullptr);
  if (accepted == 0) return undo();
  CHECK(accepted > 0 && accepted <= int32_t(work_->tokens.size()));
  const int32_t length = sequence_->length();
  const size_t recurrent_count = memory_->recurrent_groups_.size();
  bool state_found = recurrent_count == 0;
  for (size_t capture = 0; recurrent_count > 0 && capture < work_->capture_counts.size();
       ++capture) {
    const int32_t count = work_->capture_counts[capture];
    if (count > accepted) break;
    if (count == accepted) {
      adopt_states(capture);
      state_found = true;
      break;
    }
    Anchor& anchor = sequence_->anchors_.emplace_back(Anchor{length + count, {}});
    for (size_t index = 0; index < recurrent_count; ++index) {
      Pool* pool = memory_->pools_[size_t(memory_->recurrent_groups_[index])].get();
      anchor.states.emplace_back(pool).push(
          std::exchange(work_->captured_states[capture * recurrent_count + index], -1));
    }
  }
  CHECK(state_found);
  sequence_->tokens_.insert(sequence_->tokens_.end(), work_->tokens.begin(),
                            work_->tokens.begin() + accepted);
  for (size_t index = 0; index < sequence_->pages_.size(); ++index) {
    sequence_->pages_[index].truncate(size_t(pages_of(length + accepted)));
    const int32_t tail = work_->replaced_tails[index];
    if (tail >= 0) memory_->pools_[size_t(memory_->full_groups_[index])]->release(tail);
  }
  finish();
}

void Transaction::undo() {
  for (size_t index = 0; index < work_->replaced_tails.size(); ++index) {
    BlockRefs& pages = sequence_->pages_[index];
    pages.truncate(work_->old_page_counts[index]);
    const int32_t tail = work_->replaced_tails[index];
    if (tail < 0) continue;
    const int32_t copy = pages.exchange_last(tail);
    memory_->pools_[size_t(memory_->full_groups_[index])]->release(copy);
  }
  finish();
}

// Gives back the states that nobody took and the work's buffers.
void Transaction::finish() {
  const size_t recurrent_count = memory_->recurrent_groups_.size();
  for (size_t entry = 0; entry < work_->captured_states.size(); ++entry) {
    const int32_t state = work_->captured_states[entry];
    const int32_t group = memory_->recurrent_groups_[entry % recurrent_count];
    if (state >= 0) memory_->pools_[size_t(group)]->release(state);
  }
  work_->old_page_counts.clear();
  work_->replaced_tails.clear();
  work_->captured_states.clear();
  work_->captures.clear();
  memory_->idle_work_.push_back(std::move(work_));
  sequence_ = nullptr;
}

}  // namespace cairn::memory
