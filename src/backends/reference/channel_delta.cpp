// The delta rule with a decay for each channel, token by token, and RWKV-7's bonus term.
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/recurrence.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"

namespace cairn::reference {
namespace {

// One head of one row: [key_dim] each but v, [value_dim].
struct HeadRow {
  const float *q, *written, *asked, *erased, *decay, *v;
};

// What the head's keys do. `scratch` has room for three times key_dim.
HeadRow head_row(const op::ChannelDeltaScan& op, const Step& step, int32_t row, int32_t head,
                 float* scratch) {
  const size_t key_dim = size_t(op.key_dim), first = size_t(head) * key_dim;
  const float* k = step.row(op.k, row) + first;
  const float* log_decay = step.row(op.log_decay, row) + first;
  const float a = op.a.exists() ? op.a[head] : 1.0f;
  float *decay = scratch, *asked = scratch + key_dim, *written = scratch + 2 * key_dim;
  for (size_t n = 0; n < key_dim; ++n) decay[n] = elementary::exp(log_decay[n] * a);
  const float* q = step.row(op.q, row) + first;
  const float* v = step.row(op.v, row) + size_t(head) * size_t(op.value_dim);
  if (!op.rate.exists()) {
    return {q, k, step.row(op.asked, row) + first, step.row(op.erased, row) + first, decay, v};
  }
  const float rate = elementary::sigmoid(step.row(op.rate, row)[head]);
  for (size_t n = 0; n < key_dim; ++n) {
    asked[n] = k[n] * decay[n];
    written[n] = k[n] * rate;
  }
  return {q, written, asked, written, decay, v};
}

// Moves one head's state [key_dim][value_dim] on by one row, and writes the row's outputs.
void scan_row(const op::ChannelDeltaScan& op, const Step& step, int32_t row, int32_t head,
              float* state, float* scratch) {
  const size_t key_dim = size_t(op.key_dim), value_dim = size_t(op.value_dim);
  const HeadRow r = head_row(op, step, row, head, scratch);
  float* out = step.row(op.out, row) + size_t(head) * value_dim;
  for (size_t p = 0; p < value_dim; ++p) {
    float known = 0;  // What the state answers to the key that is asked.
    for (size_t n = 0; n < key_dim; ++n) {
      known = std::fma(state[n * value_dim + p], r.asked[n], known);
    }
    float total = 0;
    for (size_t n = 0; n < key_dim; ++n) {
      float& s = state[n * value_dim + p];
      s = std::fma(r.erased[n], -known, std::fma(r.written[n], r.v[p], s * r.decay[n]));
      total = std::fma(s, r.q[n], total);
    }
    out[p] = total;
  }
}

void scan_head(const Op& any, const Step& step, int64_t task, std::byte* scratch) {
  const auto& op = std::get<op::ChannelDeltaScan>(any);
  const int32_t head = int32_t(task % op.head_count);
  scan_captures(step.slices[size_t(task / op.head_count)], step.state_tensors[size_t(op.state)],
                head, size_t(op.key_dim) * size_t(op.value_dim), [&](int32_t row, float* state) {
                  scan_row(op, step, row, head, state, reinterpret_cast<float*>(scratch));
                });
}

void scale_by_dots(const op::ScaleByDots& op, const Step& step, int32_t row) {
  const float *a = step.row(op.a, row), *b = step.row(op.b, row), *x = step.row(op.x, row);
  const std::span<float> out = row_of(step, op.out, row);
  const size_t head_dim = size_t(op.head_dim);
  for (size_t first = 0; first < out.size(); first += head_dim) {
    float dot = 0;
    for (size_t n = first; n < first + head_dim; ++n) {
      dot = std::fma(a[n] * b[n], op.gain[n], dot);
    }
    for (size_t n = first; n < first + head_dim; ++n) out[n] = x[n] * dot;
  }
}

}  // namespace

host::HostKernel channel_delta_scan_kernel() {
  return {.task_count = [](const Op& op, const Step& step) -> int64_t {
            return int64_t(step.slices.size()) * std::get<op::ChannelDeltaScan>(op).head_count;
          },
          .run = scan_head,
          .scratch_bytes = [](const Op& op) -> size_t {
            return 3 * size_t(std::get<op::ChannelDeltaScan>(op).key_dim) * sizeof(float);
          }};
}

host::HostKernel scale_by_dots_kernel() {
  return row_kernel<op::ScaleByDots, scale_by_dots>();
}

}  // namespace cairn::reference
