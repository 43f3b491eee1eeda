// Mamba-1's selective scan (Gu and Dao, 2023), token by token, one channel at a time.
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/recurrence.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"

namespace cairn::reference {
namespace {

// Moves one channel's states on by one row, and writes the row's output. The channel's states stand
// `stride` floats apart.
void scan_row(const op::MambaScan& op, const Step& step, int32_t row, int32_t channel, float* state,
              size_t stride) {
  const size_t state_size = size_t(op.state_size);
  const float x = step.row(op.x, row)[channel];
  const float* b = step.row(op.b, row);
  const float* c = step.row(op.c, row);
  const float* a = op.a.from(int64_t(channel) * int64_t(state_size));

  const float dt = elementary::softplus(step.row(op.dt, row)[channel]);
  const float fed = x * dt;
  float total = 0;
  for (size_t n = 0; n < state_size; ++n) {
    float& s = state[n * stride];
    s = std::fma(fed, b[n], s * elementary::exp(dt * a[n]));
    total = std::fma(s, c[n], total);
  }
  step.row(op.out, row)[channel] = std::fma(op.d[channel], x, total);
}

// Walks from capture to capture; the next capture's memory is where the states are kept meanwhile,
// so the state before the slice is only read.
void scan_channel(const op::MambaScan& op, const Step& step, const Slice& slice, int32_t channel) {
  const StateTensor& tensor = step.state_tensors[size_t(op.state)];
  const size_t stride = size_t(op.x.width);
  const float* before = state_before(slice, tensor);
  int32_t row = 0;
  for (const Capture& capture : slice.captures) {
    float* after = captured_state(capture, tensor);
    for (size_t n = 0; n < size_t(op.state_size); ++n) {
      const size_t index = n * stride + size_t(channel);
      after[index] = before == nullptr ? 0.0f : before[index];
    }
    for (; row < capture.row_count; ++row) {
      scan_row(op, step, slice.first_row + row, channel, after + channel, stride);
    }
    before = after;
  }
  CHECK(row == slice.row_count);
}

}  // namespace

host::HostKernel mamba_scan_kernel() {
  return {.task_count = [](const Op& op, const Step& step) -> int64_t {
            return int64_t(step.slices.size()) * std::get<op::MambaScan>(op).x.width;
          },
          .run =
              [](const Op& op, const Step& step, int64_t task, std::byte*) {
                const auto& scan = std::get<op::MambaScan>(op);
                scan_channel(scan, step, step.slices[size_t(task / scan.x.width)],
                             int32_t(task % scan.x.width));
              },
          .scratch_bytes = nullptr};
}

}  // namespace cairn::reference
