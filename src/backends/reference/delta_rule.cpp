// The gated delta rule (Yang et al., 2024), token by token. No chunked form: it rounds differently.
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

void scan_head(const op::GatedDeltaScan& op, const Step& step, const Slice& slice, int32_t head) {
  scan_captures(slice, step.state_tensors[size_t(op.state)], head,
                size_t(op.key_dim) * size_t(op.value_dim),
                [&](int32_t row, float* state) { scan_row(op, step, row, head, state); });
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
