// Ops on residual streams that lie side by side in a row, and gaussian top-k.
#include <algorithm>
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/partial_sums.h"
#include "backends/reference/row_kernel.h"

namespace cairn::reference {
namespace {

void mix_streams(const op::MixStreams& op, const Step& step, int32_t row) {
  const std::span<const float> a = row_of(step, op.a, row);
  const std::span<const float> b = row_of(step, op.b, row);
  const float* coefficients = op.coefficients.exists() ? step.row(op.coefficients, row) : nullptr;
  const std::span<float> out = row_of(step, op.out, row);
  const size_t width = size_t(op.width);
  const size_t in_count = b.size() / width;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t stream = i / width;
    float total = a[i];
    for (size_t j = 0; j < in_count; ++j) {
      const float own = coefficients == nullptr ? 0.0f : coefficients[stream * in_count + j];
      total = std::fma(own + op.offset, b[j * width + i % width], total);
    }
    out[i] = total;
  }
}

void match_magnitude(const op::MatchMagnitude& op, const Step& step, int32_t row) {
  const std::span<const float> first = row_of(step, op.first, row);
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<float> out = row_of(step, op.out, row);
  const size_t width = first.size();
  const float wanted = std::sqrt(sum_of_squares(first) / float(width));
  std::copy(first.begin(), first.end(), out.begin());
  for (size_t begin = 0; begin < x.size(); begin += width) {
    const float mean = sum_of_squares(x.subspan(begin, width)) / float(width);
    const float scale = wanted / std::sqrt(mean < op.floor ? op.floor : mean);
    for (size_t i = begin; i < begin + width; ++i) out[width + i] = x[i] * scale;
  }
}

void gaussian_topk(const op::GaussianTopk& op, const Step& step, int32_t row) {
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<float> out = row_of(step, op.out, row);
  const float mean = sum(x) / float(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] - mean;
  const float cut = op.deviations * std::sqrt(sum_of_squares(out) / float(x.size()));
  for (float& value : out) value = value - cut > 0 ? value - cut : 0;
}

}  // namespace

host::HostKernel mix_streams_kernel() {
  return row_kernel<op::MixStreams, mix_streams>();
}
host::HostKernel match_magnitude_kernel() {
  return row_kernel<op::MatchMagnitude, match_magnitude>();
}
host::HostKernel gaussian_topk_kernel() {
  return row_kernel<op::GaussianTopk, gaussian_topk>();
}

}  // namespace cairn::reference
