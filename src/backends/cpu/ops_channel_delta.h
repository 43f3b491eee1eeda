// The tasks of the delta rule with a decay for each channel: a head of a slice, or some columns of
// a wide one, which do not depend on the others. States and captures as in ops_delta.h: a state
// before a slice is only read, nothing is copied.
#pragma once

#include <algorithm>
#include <cstring>
#include <variant>

#include "backends/cpu/ops_kernels.h"
#include "backends/cpu/state_streams.h"
#include "backends/host/host.h"
#include "backends/reference/recurrence.h"

namespace cairn::cpu {

inline constexpr int32_t kChannelDeltaColumns = 128;
// Rows whose decays are computed at once: at 128 keys 24 KiB with what else is made of the keys.
inline constexpr int32_t kChannelDeltaRows = 16;

// Columns [first, first + count) of a head, and the state's place in its tensor.
struct ChannelDeltaTask {
  int32_t head, first_column, column_count;
  size_t state_offset;  // Floats.

  ChannelDeltaTask(const op::ChannelDeltaScan& op, int32_t index) {
    const int32_t per_head = tasks_per_head(op);
    head = index / per_head;
    first_column = index % per_head * kChannelDeltaColumns;
    column_count = std::min(kChannelDeltaColumns, op.value_dim - first_column);
    state_offset = size_t(head) * size_t(op.key_dim) * size_t(op.value_dim) + size_t(first_column);
  }
  static int32_t tasks_per_head(const op::ChannelDeltaScan& op) {
    return (op.value_dim + kChannelDeltaColumns - 1) / kChannelDeltaColumns;
  }
};

// The decays of the rows [first, first + count), and what else is made of a head's keys.
template <const OpsTable& Table>
void fill_channel_delta(const op::ChannelDeltaScan& op, const Step& step, int32_t head,
                        int32_t first, int32_t count, float* scratch, ChannelDeltaArgs& args) {
  const int64_t column = int64_t(head) * op.key_dim;
  const int64_t floats = int64_t(kChannelDeltaRows) * op.key_dim;
  const bool is_given = !op.rate.exists();
  float *decay = scratch, *asked = scratch + floats, *written = scratch + 2 * floats;
  for (int32_t row = 0; row < count; ++row) {
    const int64_t at = int64_t(row) * op.key_dim;
    Table.channel_delta_steps({.log_decay = step.row(op.log_decay, first + row) + column,
                               .k = is_given ? nullptr : step.row(op.k, first + row) + column,
                               .decay = decay + at,
                               .asked = asked + at,
                               .written = written + at,
                               .key_dim = op.key_dim,
                               .a = op.a == nullptr ? 1.0f : op.a[head],
                               .raw_rate = is_given ? 0.0f : step.row(op.rate, first + row)[head]});
  }
  args.decay = decay;
  args.decay_stride = op.key_dim;
  args.asked = is_given ? step.row(op.asked, first) + column : asked;
  args.asked_stride = is_given ? op.asked.stride : op.key_dim;
  args.written = is_given ? step.row(op.k, first) + column : written;
  args.written_stride = is_given ? op.k.stride : op.key_dim;
  args.erased = is_given ? step.row(op.erased, first) + column : written;
  args.erased_stride = is_given ? op.erased.stride : op.key_dim;
}

// Moves a task's states from `before` to `after` over the rows [first, end) of the step.
template <const OpsTable& Table>
void channel_delta_scan_rows(const op::ChannelDeltaScan& op, const Step& step,
                             const ChannelDeltaTask& task, int32_t first, int32_t end,
                             const float* before, float* after, float* scratch) {
  const bool streams = end - first == 1 && may_stream(after, op.value_dim);
  if (streams) fetch_first(before);
  const int64_t key_column = int64_t(task.head) * op.key_dim;
  const int64_t value_column = int64_t(task.head) * op.value_dim + task.first_column;
  for (int32_t row = first; row < end; row += kChannelDeltaRows) {
    ChannelDeltaArgs args{};
    args.row_count = std::min(kChannelDeltaRows, end - row);
    fill_channel_delta<Table>(op, step, task.head, row, args.row_count, scratch, args);
    args.q = step.row(op.q, row) + key_column;
    args.q_stride = op.q.stride;
    args.v = step.row(op.v, row) + value_column;
    args.v_stride = op.v.stride;
    args.out = step.row(op.out, row) + value_column;
    args.out_stride = op.out.stride;
    args.column_count = task.column_count;
    args.key_dim = op.key_dim;
    args.value_dim = op.value_dim;
    args.before = before;
    args.after = after;
    args.streams = streams;
    Table.channel_delta(args);
    before = after;
  }
}

template <const OpsTable& Table>
void channel_delta_slice(const op::ChannelDeltaScan& op, const Step& step, const Slice& slice,
                         const ChannelDeltaTask& task, std::byte* scratch) {
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
    channel_delta_scan_rows<Table>(op, step, task, slice.first_row + row,
                                   slice.first_row + capture.row_count, before, after,
                                   reinterpret_cast<float*>(scratch));
    before = after;
    row = capture.row_count;
  }
  CHECK(row == slice.row_count);
}

template <const OpsTable& Table>
void channel_delta_scan(const Op& any, const Step& step, int64_t index, std::byte* scratch) {
  const auto& op = std::get<op::ChannelDeltaScan>(any);
  const int32_t task_count = op.head_count * ChannelDeltaTask::tasks_per_head(op);
  channel_delta_slice<Table>(op, step, step.slices[size_t(index / task_count)],
                             ChannelDeltaTask(op, int32_t(index % task_count)), scratch);
}

// Some heads of all slices.
template <const OpsTable& Table>
void channel_delta_piece(const Op& any, const Step& step, const host::Piece& piece,
                         std::byte* scratch) {
  const auto& op = std::get<op::ChannelDeltaScan>(any);
  const int32_t per_head = ChannelDeltaTask::tasks_per_head(op);
  for (const Slice& slice : step.slices) {
    for (int32_t task = piece.first_column / op.value_dim * per_head;
         task < piece.end_column / op.value_dim * per_head; ++task) {
      channel_delta_slice<Table>(op, step, slice, ChannelDeltaTask(op, task), scratch);
    }
  }
}

template <const OpsTable& Table>
host::HostKernel channel_delta_kernel() {
  return {
      .task_count = [](const Op& any, const Step& step) -> int64_t {
        const auto& op = std::get<op::ChannelDeltaScan>(any);
        return int64_t(step.slices.size()) * op.head_count * ChannelDeltaTask::tasks_per_head(op);
      },
      .run = channel_delta_scan<Table>,
      .scratch_bytes = [](const Op& any) -> size_t {
        const auto key_dim = size_t(std::get<op::ChannelDeltaScan>(any).key_dim);
        return 3 * size_t(kChannelDeltaRows) * key_dim * sizeof(float);
      },
      .run_piece = channel_delta_piece<Table>,
      .piece_columns = [](const Op& any,
                          const Step&) { return std::get<op::ChannelDeltaScan>(any).value_dim; }};
}

}  // namespace cairn::cpu
