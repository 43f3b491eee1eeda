// Ops whose outputs each depend on the same element of their inputs only: sums, products, gates.
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"

namespace cairn::reference {
namespace {

void add(const op::Add& op, const Step& step, int32_t row) {
  const std::span<const float> a = row_of(step, op.a, row);
  const std::span<const float> b = row_of(step, op.b, row);
  const std::span<float> out = row_of(step, op.out, row);
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::fma(b[i], op.scale, a[i]);
}

void scale(const op::Scale& op, const Step& step, int32_t row) {
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<float> out = row_of(step, op.out, row);
  for (size_t i = 0; i < out.size(); ++i) out[i] = x[i] * op.factor;
  if (!op.of_columns.exists()) return;
  for (size_t i = 0; i < out.size(); ++i) out[i] *= op.of_columns[int64_t(i)];
}

void clamp(const op::Clamp& op, const Step& step, int32_t row) {
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<float> out = row_of(step, op.out, row);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = x[i] < -op.limit ? -op.limit : x[i] > op.limit ? op.limit : x[i];
  }
}

float activation_of(Activation activation, float x) {
  switch (activation) {
    case Activation::silu:
      return elementary::silu(x);
    case Activation::gelu_erf:
      return elementary::gelu_erf(x);
    case Activation::gelu_tanh:
      return elementary::gelu_tanh(x);
    case Activation::relu:
      return x > 0 ? x : 0;  // NaN becomes 0, as maxps does it.
    case Activation::sigmoid:
      return elementary::sigmoid(x);
    case Activation::tanh:
      return elementary::tanh(x);
    case Activation::softplus:
      return elementary::softplus(x);
    case Activation::clamped_swiglu: {
      const float g = 7.0f < x ? 7.0f : x;
      return g * elementary::sigmoid(1.702f * g);
    }
    case Activation::none:
      return x;
  }
  return x;
}

void activate(const op::Activate& op, const Step& step, int32_t row) {
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<float> out = row_of(step, op.out, row);
  for (size_t i = 0; i < out.size(); ++i) out[i] = activation_of(op.activation, x[i]);
}

// The side that the activation multiplies.
float gated(Activation activation, float x) {
  return activation == Activation::clamped_swiglu ? elementary::clamp(x, -7.0f, 7.0f) + 1.0f : x;
}

void gate(const op::Gate& op, const Step& step, int32_t row) {
  const std::span<const float> gates = row_of(step, op.gate, row);
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<float> out = row_of(step, op.out, row);
  const size_t run = op.run == 0 ? out.size() : size_t(op.run);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t from = i + i / run * run;  // As many elements of the other side are passed over.
    out[i] = activation_of(op.activation, gates[from]) * gated(op.activation, x[from]);
  }
}

void expert_scale(const op::ExpertScale& op, const Step& step, int32_t row) {
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<const float> weights = row_of(step, op.weights, row);
  const std::span<float> out = row_of(step, op.out, row);
  for (size_t rank = 0; rank < weights.size(); ++rank) {
    for (size_t i = 0; i < x.size(); ++i) out[rank * x.size() + i] = x[i] * weights[rank];
  }
}

void expert_sum(const op::ExpertSum& op, const Step& step, int32_t row) {
  const std::span<const float> x = row_of(step, op.x, row);
  const std::span<const float> weights = row_of(step, op.weights, row);
  const std::span<float> out = row_of(step, op.out, row);
  for (size_t i = 0; i < out.size(); ++i) {
    float total = 0;
    for (size_t rank = 0; rank < weights.size(); ++rank) {
      total = std::fma(weights[rank], x[rank * out.size() + i], total);
    }
    out[i] = total;
  }
}

}  // namespace

host::HostKernel add_kernel() {
  return row_kernel<op::Add, add>();
}
host::HostKernel scale_kernel() {
  return row_kernel<op::Scale, scale>();
}
host::HostKernel clamp_kernel() {
  return row_kernel<op::Clamp, clamp>();
}
host::HostKernel activate_kernel() {
  return row_kernel<op::Activate, activate>();
}
host::HostKernel gate_kernel() {
  return row_kernel<op::Gate, gate>();
}
host::HostKernel expert_scale_kernel() {
  return row_kernel<op::ExpertScale, expert_scale>();
}
host::HostKernel expert_sum_kernel() {
  return row_kernel<op::ExpertSum, expert_sum>();
}

}  // namespace cairn::reference
