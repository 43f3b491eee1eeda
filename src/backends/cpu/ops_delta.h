// The gated delta rule's tasks: some columns of a head, which do not depend on the others. States
// and captures as in ops_states.h: a state before a slice is only read, nothing is copied.
#pragma once

#include <algorithm>
#include <cstring>
#include <variant>

#include "backends/cpu/ops_kernels.h"
#include "backends/cpu/state_streams.h"
#include "backends/host/host.h"
#include "backends/reference/recurrence.h"

namespace cairn::cpu {

// Columns of a task: a whole head as models have it, so that a row alone reads states in order.
inline constexpr int32_t kDeltaColumns = 128;
// Rows whose step sizes are computed at once.
inline constexpr int32_t kDeltaRows = 64;

// Columns [first, first + count) of a head, and the state's place in its tensor.
struct DeltaTask {
  int32_t head, first_column, column_count;
  size_t state_offset;  // Floats.

  DeltaTask(const op::GatedDeltaScan& op, int32_t index) {
    const int32_t per_head = tasks_per_head(op);
    head = index / per_head;
    first_column = index % per_head * kDeltaColumns;
    column_count = std::min(kDeltaColumns, op.value_dim - first_column);
    state_offset = size_t(head) * size_t(op.key_dim) * size_t(op.value_dim) + size_t(first_column);
  }
  static int32_t tasks_per_head(const op::GatedDeltaScan& op) {
    return (op.value_dim + kDeltaColumns - 1) / kDeltaColumns;
  }
};

// Moves a task's states from `before` to `after` over the rows [first, end) of the step.
template <const OpsTable& Table>
void delta_scan_rows(const op::GatedDeltaScan& op, const Step& step, const DeltaTask& task,
                     int32_t first, int32_t end, const float* before, float* after,
                     float* scratch) {
  const bool streams = end - first == 1 && may_stream(after, op.value_dim);
  if (streams) fetch_first(before);
  const int64_t key_column = int64_t(op.key_head(task.head)) * op.key_dim;
  const int64_t value_column = int64_t(task.head) * op.value_dim + task.first_column;
  float* decay = scratch;
  float* rate = scratch + kDeltaRows;
  for (int32_t row = first; row < end; row += kDeltaRows) {
    const int32_t count = std::min(kDeltaRows, end - row);
    Table.delta_steps({.raw = step.row(op.dt, row) + task.head,
                       .raw_rate = step.row(op.rate, row) + task.head,
                       .decay = decay,
                       .rate = rate,
                       .raw_stride = op.dt.stride,
                       .raw_rate_stride = op.rate.stride,
                       .count = count,
                       .bias = op.dt_bias[task.head],
                       .a = op.a[task.head]});
    Table.delta({.q = step.row(op.q, row) + key_column,
                 .k = step.row(op.k, row) + key_column,
                 .v = step.row(op.v, row) + value_column,
                 .decay = decay,
                 .rate = rate,
                 .out = step.row(op.out, row) + value_column,
                 .q_stride = op.q.stride,
                 .k_stride = op.k.stride,
                 .v_stride = op.v.stride,
                 .out_stride = op.out.stride,
                 .row_count = count,
                 .column_count = task.column_count,
                 .key_dim = op.key_dim,
                 .value_dim = op.value_dim,
                 .before = before,
                 .after = after,
                 .streams = streams});
    before = after;
  }
}

template <const OpsTable& Table>
void delta_slice(const op::GatedDeltaScan& op, const Step& step, const Slice& slice,
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
    delta_scan_rows<Table>(op, step, task, slice.first_row + row,
                           slice.first_row + capture.row_count, before, after,
                           reinterpret_cast<float*>(scratch));
    before = after;
    row = capture.row_count;
  }
  CHECK(row == slice.row_count);
}

template <const OpsTable& Table>
void delta_scan(const Op& any, const Step& step, int64_t index, std::byte* scratch) {
  const auto& op = std::get<op::GatedDeltaScan>(any);
  const int32_t task_count = op.head_count * DeltaTask::tasks_per_head(op);
  delta_slice<Table>(op, step, step.slices[size_t(index / task_count)],
                     DeltaTask(op, int32_t(index % task_count)), scratch);
}

// Some heads of all slices.
template <const OpsTable& Table>
void delta_piece(const Op& any, const Step& step, const host::Piece& piece, std::byte* scratch) {
  const auto& op = std::get<op::GatedDeltaScan>(any);
  const int32_t per_head = DeltaTask::tasks_per_head(op);
  for (const Slice& slice : step.slices) {
    for (int32_t task = piece.first_column / op.value_dim * per_head;
         task < piece.end_column / op.value_dim * per_head; ++task) {
      delta_slice<Table>(op, step, slice, DeltaTask(op, task), scratch);
    }
  }
}

template <const OpsTable& Table>
host::HostKernel delta_kernel() {
  return {.task_count = [](const Op& any, const Step& step) -> int64_t {
            const auto& op = std::get<op::GatedDeltaScan>(any);
            return int64_t(step.slices.size()) * op.head_count * DeltaTask::tasks_per_head(op);
          },
          .run = delta_scan<Table>,
          .scratch_bytes = [](const Op&) -> size_t { return 2 * kDeltaRows * sizeof(float); },
          .run_piece = delta_piece<Table>,
          .piece_columns = [](const Op& any,
                              const Step&) { return std::get<op::GatedDeltaScan>(any).value_dim; }};
}

}  // namespace cairn::cpu
