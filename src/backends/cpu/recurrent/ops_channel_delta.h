// The delta rule with a decay for each channel, as a Rule of ops_delta_tasks.h.
#pragma once

#include "backends/cpu/recurrent/ops_delta_tasks.h"

namespace cairn::cpu {

// Rows whose decays are computed at once: at 128 keys 24 KiB with what else is made of the keys.
inline constexpr int32_t kChannelDeltaRows = 16;

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
                               .a = op.a.exists() ? op.a[head] : 1.0f,
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

template <const OpsTable& Table>
struct ChannelDeltaRule {
  using Op = op::ChannelDeltaScan;

  static size_t scratch_bytes(const Op& op) {
    return (3 * size_t(kChannelDeltaRows) + kDeltaRoomColumns) * size_t(op.key_dim) * sizeof(float);
  }

  static void move(const Op& op, const Step& step, const DeltaTask& task, const DeltaMove& move,
                   float* scratch) {
    const int64_t key_column = int64_t(task.head) * op.key_dim;
    const int64_t value_column = int64_t(task.head) * op.value_dim + task.first_column;
    const float* before = move.before;
    for (int32_t row = move.first; row < move.end; row += kChannelDeltaRows) {
      ChannelDeltaArgs args{};
      args.row_count = std::min(kChannelDeltaRows, move.end - row);
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
      args.after = move.after;
      args.streams = move.streams && row + args.row_count == move.end;
      args.room = scratch + 3 * int64_t(kChannelDeltaRows) * op.key_dim;
      Table.channel_delta(args);
      before = move.after;
    }
  }
};

}  // namespace cairn::cpu
