// The tasks of delta rules: some columns of a head, which do not depend on the others. States and
// captures as in ops_states.h: a state before a slice is only read, nothing is copied. A rule has
// its op's type as Op, move() for some rows of a task, and scratch_bytes() for that.
#pragma once

#include <algorithm>
#include <cstring>
#include <variant>

#include "backends/cpu/ops_kernels.h"
#include "backends/cpu/recurrent/state_streams.h"
#include "backends/host/host.h"
#include "backends/reference/recurrence.h"

namespace cairn::cpu {

// Columns of a task: a whole head as models have it, so that a row alone reads states in order.
inline constexpr int32_t kDeltaColumns = 128;

// Columns [first, first + count) of a head, and the state's place in its tensor.
struct DeltaTask {
  int32_t head, first_column, column_count;
  size_t state_offset;  // Floats.

  template <class ScanOp>
  DeltaTask(const ScanOp& op, int32_t index) {
    const int32_t per_head = tasks_per_head(op);
    head = index / per_head;
    first_column = index % per_head * kDeltaColumns;
    column_count = std::min(kDeltaColumns, op.value_dim - first_column);
    state_offset = size_t(head) * size_t(op.key_dim) * size_t(op.value_dim) + size_t(first_column);
  }
  template <class ScanOp>
  static int32_t tasks_per_head(const ScanOp& op) {
    return (op.value_dim + kDeltaColumns - 1) / kDeltaColumns;
  }
};

// Rows [first, end) of the step move a task's states from `before` to `after`.
struct DeltaMove {
  int32_t first, end;
  const float* before;
  float* after;
  bool streams;  // The last of them store the states past the caches.
};

template <class Rule>
void delta_slice(const typename Rule::Op& op, const Step& step, const Slice& slice,
                 const DeltaTask& task, std::byte* scratch) {
  const StateTensor& tensor = step.state_tensors[size_t(op.state)];
  const float* before = reference::state_before(slice, tensor);
  if (before != nullptr) before += task.state_offset;
  int32_t row = 0;
  for (const Capture& capture : slice.captures) {
    float* after = reference::captured_state(capture, tensor) + task.state_offset;
    if (before == nullptr) {
      for (int32_t n = 0; n < op.key_dim; ++n) {
        std::memset(after + int64_t(n) * op.value_dim, 0,
                    size_t(task.column_count) * sizeof(float));
      }
      before = after;
    }
    CHECK(capture.row_count > row);
    const bool streams = goes_past_caches(slice, capture, after, op.value_dim);
    if (streams) fetch_first(before);
    Rule::move(op, step, task,
               {.first = slice.first_row + row,
                .end = slice.first_row + capture.row_count,
                .before = before,
                .after = after,
                .streams = streams},
               reinterpret_cast<float*>(scratch));
    before = after;
    row = capture.row_count;
  }
  CHECK(row == slice.row_count);
}

template <class Rule>
void delta_scan(const Op& any, const Step& step, int64_t index, std::byte* scratch) {
  const auto& op = std::get<typename Rule::Op>(any);
  const int32_t task_count = op.head_count * DeltaTask::tasks_per_head(op);
  delta_slice<Rule>(op, step, step.slices[size_t(index / task_count)],
                    DeltaTask(op, int32_t(index % task_count)), scratch);
}

// Some heads of all slices.
template <class Rule>
void delta_piece(const Op& any, const Step& step, const host::Piece& piece, std::byte* scratch) {
  const auto& op = std::get<typename Rule::Op>(any);
  const int32_t per_head = DeltaTask::tasks_per_head(op);
  for (const Slice& slice : step.slices) {
    for (int32_t task = piece.first_column / op.value_dim * per_head;
         task < piece.end_column / op.value_dim * per_head; ++task) {
      delta_slice<Rule>(op, step, slice, DeltaTask(op, task), scratch);
    }
  }
}

template <class Rule>
host::HostKernel delta_tasks() {
  using ScanOp = typename Rule::Op;
  return {
      .task_count = [](const Op& any, const Step& step) -> int64_t {
        const auto& op = std::get<ScanOp>(any);
        return int64_t(step.slices.size()) * op.head_count * DeltaTask::tasks_per_head(op);
      },
      .run = delta_scan<Rule>,
      .scratch_bytes = [](const Op& any) { return Rule::scratch_bytes(std::get<ScanOp>(any)); },
      .run_piece = delta_piece<Rule>,
      .piece_columns = [](const Op& any, const Step&) { return std::get<ScanOp>(any).value_dim; }};
}

}  // namespace cairn::cpu
