// The gated delta rule (Yang et al., 2024), token by token. No chunked form: it rounds differently.
#include <algorithm>
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/recurrence.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"

namespace cairn::reference {
namespace {

// Moves one head's state [key_dim][value_dim] on by one row, and writes the row's outputs.
void scan_row(const op::GatedDeltaScan& op, const Step& step, int32_t row, int32_t head,
              float* state) {
  const size_t key_dim = size_t(op.key_dim), value_dim = size_t(op.value_dim);
  const float* q = step.row(op.q, row) + size_t(op.key_head(head)) * key_dim;
  const float* k = step.row(op.k, row) + size_t(op.key_head(head)) * key_dim;
  const float* v = step.row(op.v, row) + size_t(head) * value_dim;
  float* out = step.row(op.out, row) + size_t(head) * value_dim;

  const float dt = elementary::softplus(step.row(op.dt, row)[head] + op.dt_bias[head]);
  const float decay = elementary::exp(dt * op.a[head]);
  const float rate = elementary::sigmoid(step.row(op.rate, row)[head]);
  for (size_t p = 0; p < value_dim; ++p) {
    float known = 0;  // What the state answers to this key.
    for (size_t n = 0; n < key_dim; ++n) known = std::fma(state[n * value_dim + p], k[n], known);
    const float delta = std::fma(known, -decay, v[p]) * rate;
    float total = 0;
    for (size_t n = 0; n < key_dim; ++n) {
      float& s = state[n * value_dim + p];
      s = std::fma(k[n], delta, s * decay);
      total = std::fma(s, q[n], total);
    }
    out[p] = total;
  }
}

// Walks from capture to capture, as the scan of Mamba-2 does: the state before is only read.
void scan_head(const op::GatedDeltaScan& op, const Step& step, const Slice& slice, int32_t head) {
  const StateTensor& tensor = step.state_tensors[size_t(op.state)];
  const size_t head_floats = size_t(op.key_dim) * size_t(op.value_dim);
  const size_t first = size_t(head) * head_floats;
  const float* before = state_before(slice, tensor);
  int32_t row = 0;
  for (const Capture& capture : slice.captures) {
    float* state = captured_state(capture, tensor) + first;
    if (before == nullptr) {
      std::fill_n(state, head_floats, 0.0f);
    } else {
      std::copy_n(before + first, head_floats, state);
    }
    for (; row < capture.row_count; ++row) {
      scan_row(op, step, slice.first_row + row, head, state);
    }
    before = state - first;
  }
  CHECK(row == slice.row_count);
}

}  // namespace

host::HostKernel gated_delta_scan_kernel() {
  return {.task_count = [](const Op& op, const Step& step) -> int64_t {
            return int64_t(step.slices.size()) * std::get<op::GatedDeltaScan>(op).head_count;
          },
          .run =
              [](const Op& op, const Step& step, int64_t task, std::byte*) {
                const auto& scan = std::get<op::GatedDeltaScan>(op);
                scan_head(scan, step, step.slices[size_t(task / scan.head_count)],
                          int32_t(task % scan.head_count));
              },
          .scratch_bytes = nullptr};
}

}  // namespace cairn::reference
