// The gated delta rule, as a Rule of ops_delta_tasks.h.
#pragma once

#include "backends/cpu/recurrent/ops_delta_tasks.h"

namespace cairn::cpu {

// Rows whose step sizes are computed at once.
inline constexpr int32_t kDeltaRows = 64;

template <const OpsTable& Table>
struct GatedDeltaRule {
  using Op = op::GatedDeltaScan;

  static size_t scratch_bytes(const Op& op) {
    return (2 * kDeltaRows + size_t(op.key_dim) * kDeltaRoomColumns) * sizeof(float);
  }

  static void move(const Op& op, const Step& step, const DeltaTask& task, const DeltaMove& move,
                   float* scratch) {
    const int64_t key_column = int64_t(op.key_head(task.head)) * op.key_dim;
    const int64_t value_column = int64_t(task.head) * op.value_dim + task.first_column;
    float* decay = scratch;
    float* rate = scratch + kDeltaRows;
    const float* before = move.before;
    for (int32_t row = move.first; row < move.end; row += kDeltaRows) {
      const int32_t count = std::min(kDeltaRows, move.end - row);
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
                   .after = move.after,
                   .streams = move.streams && row + count == move.end,
                   .room = scratch + 2 * kDeltaRows});
      before = move.after;
    }
  }
};

}  // namespace cairn::cpu
