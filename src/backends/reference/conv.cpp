// The short causal convolution of recurrent layers: a few taps for each channel, over time.
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/recurrence.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"

namespace cairn::reference {
namespace {

// The inputs of a slice by their distance from its first row: negative ones stand in the tail.
struct Inputs {
  const op::ShortConv& op;
  const Step& step;
  const Slice& slice;
  const float* tail;  // [kernel - 1][channels], or null: zeros.

  float at(int32_t row, int32_t channel) const {
    if (row >= 0) return step.row(op.x, slice.first_row + row)[channel];
    if (tail == nullptr) return 0;
    return tail[(op.kernel - 1 + row) * op.x.width + channel];
  }
};

void convolve_row(const Inputs& inputs, int32_t row) {
  const op::ShortConv& op = inputs.op;
  float* out = inputs.step.row(op.out, inputs.slice.first_row + row);
  for (int32_t channel = 0; channel < op.x.width; ++channel) {
    float total = op.bias.exists() ? op.bias[channel] : 0;
    for (int32_t tap = 0; tap < op.kernel; ++tap) {
      total = std::fma(op.weight[channel * op.kernel + tap],
                       inputs.at(row - (op.kernel - 1) + tap, channel), total);
    }
    out[channel] = op.silu ? elementary::silu(total) : total;
  }
}

void capture_tail(const Inputs& inputs, int32_t row_count, float* tail) {
  const op::ShortConv& op = inputs.op;
  for (int32_t entry = 0; entry < op.kernel - 1; ++entry) {
    for (int32_t channel = 0; channel < op.x.width; ++channel) {
      tail[entry * op.x.width + channel] = inputs.at(row_count - (op.kernel - 1) + entry, channel);
    }
  }
}

void convolve_slice(const op::ShortConv& op, const Step& step, const Slice& slice) {
  const StateTensor& tensor = step.state_tensors[size_t(op.state)];
  const Inputs inputs{op, step, slice, state_before(slice, tensor)};
  for (int32_t row = 0; row < slice.row_count; ++row) convolve_row(inputs, row);
  for (const Capture& capture : slice.captures) {
    capture_tail(inputs, capture.row_count, captured_state(capture, tensor));
  }
}

}  // namespace

host::HostKernel short_conv_kernel() {
  return {.task_count = [](const Op&, const Step& step) { return int64_t(step.slices.size()); },
          .run =
              [](const Op& op, const Step& step, int64_t task, std::byte*) {
                convolve_slice(std::get<op::ShortConv>(op), step, step.slices[size_t(task)]);
              },
          .scratch_bytes = nullptr};
}

}  // namespace cairn::reference
