// Root mean square normalisation (Zhang and Sennrich, 2019) and layer normalisation (Ba, Kiros and
// Hinton, 2016) of runs of a row.
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/partial_sums.h"
#include "backends/reference/row_kernel.h"

namespace cairn::reference {
namespace {

// out = (x * (1 / sqrt(mean(x^2) + epsilon))) * gain; gain may be null: no second product.
void rms_norm_group(std::span<const float> x, const float* gain, float epsilon,
                    std::span<float> out) {
  const float mean = sum_of_squares(x) / float(x.size());
  const float scale = 1.0f / std::sqrt(mean + epsilon);
  for (size_t i = 0; i < x.size(); ++i) {
    const float normal = x[i] * scale;
    out[i] = gain != nullptr ? normal * gain[i] : normal;
  }
}

void rms_norm(const op::RmsNorm& op, const Step& step, int32_t row) {
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<float> out = row_of(step, op.out, row);
  const size_t group = size_t(op.group);
  for (size_t first = 0; first < x.size(); first += group) {
    const float* gain = op.gain.data();
    if (gain != nullptr && op.gain_per_element) gain += first;
    rms_norm_group(x.subspan(first, group), gain, op.epsilon, out.subspan(first, group));
  }
}

// c = x - mean; out = (c * (1 / sqrt(mean(c^2) + epsilon))) * gain, and with a bias
// fma(…, gain, bias).
void layer_norm_group(std::span<const float> x, const float* gain, const float* bias, float epsilon,
                      std::span<float> out) {
  const float mean = sum(x) / float(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] - mean;
  const float variance = sum_of_squares(out) / float(x.size());
  const float scale = 1.0f / std::sqrt(variance + epsilon);
  for (size_t i = 0; i < x.size(); ++i) {
    const float normal = out[i] * scale;
    if (bias != nullptr) {
      out[i] = std::fma(normal, gain[i], bias[i]);
    } else {
      out[i] = gain != nullptr ? normal * gain[i] : normal;
    }
  }
}

void layer_norm(const op::LayerNorm& op, const Step& step, int32_t row) {
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<float> out = row_of(step, op.out, row);
  const size_t group = size_t(op.group);
  for (size_t first = 0; first < x.size(); first += group) {
    const size_t skip = op.gain_per_element ? first : 0;
    layer_norm_group(x.subspan(first, group), op.gain.from(int64_t(skip)),
                     op.bias.from(int64_t(skip)), op.epsilon, out.subspan(first, group));
  }
}

}  // namespace

host::HostKernel rms_norm_kernel() {
  return row_kernel<op::RmsNorm, rms_norm>();
}
host::HostKernel layer_norm_kernel() {
  return row_kernel<op::LayerNorm, layer_norm>();
}

}  // namespace cairn::reference
