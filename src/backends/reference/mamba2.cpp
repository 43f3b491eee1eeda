// Mamba-2's recurrence (Dao and Gu, 2024), token by token. No chunked form: it rounds differently.
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/recurrence.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"

namespace cairn::reference {
namespace {

// Moves one head's state [state_size][head_dim] on by one row, and writes the row's outputs.
void scan_row(const op::Mamba2Scan& op, const Step& step, int32_t row, int32_t head, float* state) {
  const size_t head_dim = size_t(op.head_dim), state_size = size_t(op.state_size);
  const size_t group = size_t(head / (op.head_count / op.group_count));
  const float* x = step.row(op.x, row) + size_t(head) * head_dim;
  const float* b = step.row(op.b, row) + group * state_size;
  const float* c = step.row(op.c, row) + group * state_size;
  float* y = step.row(op.out, row) + size_t(head) * head_dim;

  const float dt = elementary::softplus(step.row(op.dt, row)[head] + op.dt_bias[head]);
  const float decay = elementary::exp(dt * op.a[head]);
  for (size_t p = 0; p < head_dim; ++p) {
    const float fed = x[p] * dt;
    float total = 0;
    for (size_t n = 0; n < state_size; ++n) {
      float& s = state[n * head_dim + p];
      s = std::fma(fed, b[n], s * decay);
      total = std::fma(s, c[n], total);
    }
    y[p] = std::fma(op.d[head], x[p], total);
  }
}

void scan_head(const op::Mamba2Scan& op, const Step& step, const Slice& slice, int32_t head) {
  scan_captures(slice, step.state_tensors[size_t(op.state)], head,
                size_t(op.state_size) * size_t(op.head_dim),
                [&](int32_t row, float* state) { scan_row(op, step, row, head, state); });
}

}  // namespace

host::HostKernel mamba2_scan_kernel() {
  return {.task_count = [](const Op& op, const Step& step) -> int64_t {
            return int64_t(step.slices.size()) * std::get<op::Mamba2Scan>(op).head_count;
          },
          .run =
              [](const Op& op, const Step& step, int64_t task, std::byte*) {
                const auto& scan = std::get<op::Mamba2Scan>(op);
                scan_head(scan, step, step.slices[size_t(task / scan.head_count)],
                          int32_t(task % scan.head_count));
              },
          .scratch_bytes = nullptr};
}

}  // namespace cairn::reference
