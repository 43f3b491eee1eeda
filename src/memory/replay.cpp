// Pieces of a replay read one state and write another, in turns.
#include "memory/replay.h"

#include <algorithm>
#include <utility>

namespace cairn::memory {

Replay::Replay(Sequence* sequence, int32_t piece_rows)
    : store_(sequence->store_), sequence_(sequence), work_(store_->borrow_work()) {
  const int32_t base = sequence->base_anchor();
  first_position_ = base < 0 ? 0 : sequence->anchors_[size_t(base)].position;
  row_count_ = sequence->length() - first_position_;
  piece_rows_ = std::clamp(piece_rows, 1, row_count_);
}

Replay::Replay(Replay&& other) noexcept
    : store_(other.store_),
      sequence_(std::exchange(other.sequence_, nullptr)),
      work_(std::move(other.work_)),
      first_position_(other.first_position_),
      row_count_(other.row_count_),
      piece_rows_(other.piece_rows_) {}

Replay::~Replay() {
  if (sequence_ != nullptr) finish();
}

size_t Replay::needed_bytes() const {
  return size_t(std::min(piece_count(), 2)) *
         store_->spec(store_->layout().recurrent_group).block_bytes;
}

bool Replay::take_blocks() {
  const int32_t group = store_->layout().recurrent_group;
  for (int32_t index = 0; index < std::min(piece_count(), 2); ++index) {
    const PageId state = store_->take(group, sequence_->variant().tenant);
    if (state == kNoPage) return false;
    work_->captured_states.emplace_back(&store_->pool(group), state);
  }
  return true;
}

Slice Replay::slice(int32_t piece, int32_t first_row) {
  CHECK(sequence_ != nullptr && piece >= 0 && piece < piece_count());
  const size_t group_count = size_t(store_->group_count());
  const size_t recurrent = size_t(store_->layout().recurrent_group);
  const int32_t begin = piece * piece_rows_;
  const int32_t row_count = piece_row_count(piece);
  const int32_t base = sequence_->base_anchor();
  work_->page_tables.assign(group_count, nullptr);
  work_->states_before.assign(group_count, nullptr);
  work_->states_after.assign(group_count, nullptr);
  for (size_t group = 0; group < group_count; ++group) {
    work_->page_tables[group] = sequence_->tables_[group].data();
  }
  if (piece > 0) {
    work_->states_before[recurrent] = work_->captured_states[size_t(piece - 1) % 2].address();
  } else if (base >= 0) {
    work_->states_before[recurrent] = sequence_->anchors_[size_t(base)].state.address();
  }
  work_->states_after[recurrent] = work_->captured_states[size_t(piece) % 2].address();
  work_->captures.assign(1, {.row_count = row_count, .states = work_->states_after.data()});
  return {.first_row = first_row,
          .row_count = row_count,
          .first_position = first_position_ + begin,
          .pages = work_->page_tables.data(),
          .states = work_->states_before.data(),
          .captures = work_->captures};
}

void Replay::commit() {
  CHECK(sequence_ != nullptr);
  sequence_->state_ = std::move(work_->captured_states[size_t(piece_count() - 1) % 2]);
  sequence_->drop_spare_tails();
  sequence_->drop_unneeded_pages();
  finish();
}

void Replay::finish() {
  work_->captured_states.clear();
  work_->captures.clear();
  store_->return_work(std::move(work_));
  sequence_ = nullptr;
}

}  // namespace cairn::memory
