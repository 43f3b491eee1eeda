// Allocation in all groups, commit and rollback.
#include "memory/transaction.h"

#include <algorithm>
#include <utility>

namespace cairn::memory {

Transaction::Transaction(Sequence* sequence, const StepRequest& request)
    : store_(sequence->store_),
      sequence_(sequence),
      work_(store_->borrow_work()),
      requested_captures_(request.captures.size()),
      is_logged_(int32_t(request.tokens.size()) <= store_->log_step()),
      keeps_hidden_(request.keeps_hidden && store_->layout().hidden_group >= 0) {
  work_->tokens.assign(request.tokens.begin(), request.tokens.end());
  work_->capture_counts.assign(request.captures.begin(), request.captures.end());
  work_->capture_kinds.assign(request.capture_kinds.begin(), request.capture_kinds.end());
  work_->capture_kinds.resize(request.captures.size(), AnchorKind::message_start);
  const int32_t token_count = int32_t(request.tokens.size());
  if (request.captures.empty() || request.captures.back() != token_count) {
    work_->capture_counts.push_back(token_count);
  }
  work_->edits.assign(size_t(store_->group_count()), {});
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    work_->edits[size_t(group)].old_size = sequence_->tables_[size_t(group)].size();
  }
}

Transaction::Transaction(Transaction&& other) noexcept
    : store_(other.store_),
      sequence_(std::exchange(other.sequence_, nullptr)),
      work_(std::move(other.work_)),
      requested_captures_(other.requested_captures_),
      is_logged_(other.is_logged_),
      keeps_hidden_(other.keeps_hidden_) {}

Transaction::~Transaction() {
  if (sequence_ != nullptr) undo();
}

// New pages, copies of last pages that others share, states, and the hidden row.
size_t Transaction::needed_bytes() const {
  const int32_t length = sequence_->length();
  const Layout& layout = store_->layout();
  size_t bytes = 0;
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const GroupSpec& spec = store_->spec(group);
    const bool is_written = spec.has_pages() && (spec.kind != GroupKind::log || is_logged_);
    if (!is_written) continue;
    const PageTable& table = sequence_->tables_[size_t(group)];
    int32_t count = spec.page_count(length + int32_t(work_->tokens.size())) - table.size();
    if (length % spec.page_tokens() != 0) {
      const PageId tail = table.back();
      count += int32_t(tail == kNoPage || store_->pool(group).is_shared(tail));
    }
    bytes += size_t(count) * spec.block_bytes;
  }
  if (store_->has_states()) {
    bytes += work_->capture_counts.size() * store_->spec(layout.recurrent_group).block_bytes;
  }
  if (keeps_hidden_) bytes += store_->spec(layout.hidden_group).block_bytes;
  return bytes;
}

bool Transaction::take_blocks() {
  const Layout& layout = store_->layout();
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    if (store_->spec(group).has_pages() && !extend_table(group)) return false;
  }
  for (size_t capture = 0; store_->has_states() && capture < work_->capture_counts.size();
       ++capture) {
    const PageId state = store_->take(layout.recurrent_group, variant().tenant);
    if (state == kNoPage) return false;
    work_->captured_states.emplace_back(&store_->pool(layout.recurrent_group), state);
  }
  if (!keeps_hidden_) return true;
  const PageId row = store_->take(layout.hidden_group, variant().tenant);
  if (row == kNoPage) return false;
  work_->hidden = BlockRef(&store_->pool(layout.hidden_group), row);
  return true;
}

// Pages for all rows. Rows that the log does not keep get holes, so that nothing is written there.
bool Transaction::extend_table(int32_t group) {
  const GroupSpec& spec = store_->spec(group);
  const bool is_kept = spec.kind != GroupKind::log || is_logged_;
  PageTable& table = sequence_->tables_[size_t(group)];
  const int32_t length = sequence_->length();
  if (length % spec.page_tokens() != 0) {
    if (is_kept && !own_tail(group)) return false;
    if (!is_kept) {
      TableEdit& edit = work_->edits[size_t(group)];
      edit.old_tail = table.exchange_back(kNoPage);
      edit.replaced_tail = true;
    }
  }
  const int32_t page_count = spec.page_count(length + int32_t(work_->tokens.size()));
  while (table.size() < page_count) {
    const PageId page = is_kept ? store_->take(group, variant().tenant) : kNoPage;
    if (is_kept && page == kNoPage) return false;
    table.push(page);
  }
  return true;
}

// The page that the first row is written into: a copy if others share it, a new one if it is a hole
// (a log that begins in the middle of its page).
bool Transaction::own_tail(int32_t group) {
  Pool& pool = store_->pool(group);
  PageTable& table = sequence_->tables_[size_t(group)];
  const PageId tail = table.back();
  if (tail != kNoPage && !pool.is_shared(tail)) return true;
  const PageId page = store_->take(group, variant().tenant);
  if (page == kNoPage) return false;
  if (tail != kNoPage) pool.copy(page, tail);
  TableEdit& edit = work_->edits[size_t(group)];
  edit.old_tail = table.exchange_back(page);
  edit.replaced_tail = true;
  return true;
}

void Transaction::prepare_views() {
  const size_t group_count = size_t(store_->group_count());
  const size_t capture_count = work_->capture_counts.size();
  const int32_t recurrent = store_->layout().recurrent_group;
  work_->page_tables.assign(group_count, nullptr);
  work_->states_before.assign(group_count, nullptr);
  work_->states_after.assign(capture_count * group_count, nullptr);
  for (size_t group = 0; group < group_count; ++group) {
    work_->page_tables[group] = sequence_->tables_[group].data();
  }
  if (recurrent >= 0) work_->states_before[size_t(recurrent)] = sequence_->state_.address();
  for (size_t capture = 0; capture < capture_count; ++capture) {
    std::byte** const states = work_->states_after.data() + capture * group_count;
    if (recurrent >= 0) states[recurrent] = work_->captured_states[capture].address();
    work_->captures.push_back({.row_count = work_->capture_counts[capture], .states = states});
  }
}

Slice Transaction::slice(int32_t first_row) const {
  CHECK(sequence_ != nullptr);
  return {.first_row = first_row,
          .row_count = int32_t(work_->tokens.size()),
          .first_position = sequence_->length(),
          .pages = work_->page_tables.data(),
          .states = work_->states_before.data(),
          .captures = work_->captures};
}

DeviceBytes Transaction::hidden() {
  if (!work_->hidden) return {};
  return {work_->hidden.address(), store_->layout().hidden_bytes()};
}

bool Transaction::can_accept(int32_t accepted) const {
  if (accepted < 0 || accepted > int32_t(work_->tokens.size())) return false;
  const auto& counts = work_->capture_counts;
  return accepted == 0 || !store_->has_states() || is_logged_ ||
         std::binary_search(counts.begin(), counts.end(), accepted);
}

void Transaction::commit(int32_t accepted) {
  CHECK(sequence_ != nullptr && can_accept(accepted));
  if (accepted == 0) return undo();
  const int32_t old_length = sequence_->length();
  if (store_->has_states()) take_over_states(accepted);
  sequence_->tokens_.append(std::span(work_->tokens).first(size_t(accepted)));
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const GroupSpec& spec = store_->spec(group);
    if (!spec.has_pages()) continue;
    sequence_->tables_[size_t(group)].truncate(spec.page_count(old_length + accepted));
    const PageId tail = work_->edits[size_t(group)].old_tail;
    if (tail != kNoPage) store_->pool(group).release(tail);
  }
  sequence_->hidden_ = std::move(work_->hidden);
  for (size_t capture = 0; capture < requested_captures_; ++capture) {
    const int32_t count = work_->capture_counts[capture];
    if (count > accepted) break;
    Anchor anchor{.position = old_length + count,
                  .kind = work_->capture_kinds[capture],
                  .state = {},
                  .hidden = {}};
    if (store_->has_states()) anchor.state = work_->captured_states[capture];
    if (count == accepted) anchor.hidden = sequence_->hidden_;
    sequence_->add_anchor(std::move(anchor));
  }
  sequence_->trim_log();
  sequence_->drop_spare_tails();
  sequence_->drop_unneeded_pages();
  finish();
}

// The state after the accepted tokens becomes the live one; if none was stored, the sequence is
// suspended. The state before them stays as a tail anchor then, so that no step is replayed twice;
// and also if the log would otherwise reach further than a step beyond the state that it is
// replayed from.
void Transaction::take_over_states(int32_t accepted) {
  const int32_t old_length = sequence_->length();
  const int32_t length = old_length + accepted;
  const auto& counts = work_->capture_counts;
  const auto found = std::lower_bound(counts.begin(), counts.end(), accepted);
  const bool is_stored = found != counts.end() && *found == accepted;
  if (is_logged_) {
    const int32_t base = sequence_->base_anchor();
    const int32_t base_position = base < 0 ? 0 : sequence_->anchors_[size_t(base)].position;
    const bool is_derived = base_position >= sequence_->log_begin_;
    const bool is_far = !is_derived || length - base_position > store_->log_step();
    if (old_length > 0 && (is_far || !is_stored)) {
      sequence_->add_anchor({.position = old_length,
                             .kind = AnchorKind::tail,
                             .state = sequence_->state_,
                             .hidden = sequence_->hidden_});
    }
  } else {
    sequence_->log_begin_ = length;
  }
  sequence_->state_ =
      is_stored ? work_->captured_states[size_t(found - counts.begin())] : BlockRef();
}

void Transaction::undo() {
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const TableEdit& edit = work_->edits[size_t(group)];
    PageTable& table = sequence_->tables_[size_t(group)];
    table.truncate(edit.old_size);
    if (!edit.replaced_tail) continue;
    const PageId copy = table.exchange_back(edit.old_tail);
    if (copy != kNoPage) store_->pool(group).release(copy);
  }
  finish();
}

// Releases what nobody took over, and gives back the buffers.
void Transaction::finish() {
  work_->captured_states.clear();
  work_->hidden.reset();
  work_->captures.clear();
  store_->return_work(std::move(work_));
  sequence_ = nullptr;
}

}  // namespace cairn::memory
