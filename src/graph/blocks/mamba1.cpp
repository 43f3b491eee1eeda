// The Mamba mixer.
#include "graph/blocks/mamba1.h"

namespace cairn::blocks {

State Mamba1Shape::state() const {
  return State::recurrent(
      {int64_t(conv_kernel - 1) * inner_width, int64_t(state_size) * inner_width});
}

void Mamba1::parameters(Parameters& p, int32_t width, const Mamba1Shape& shape) {
  const int32_t inner = shape.inner_width;
  p.matrix("ssm_in.weight", in, {width, 2 * inner});
  p.vector("ssm_conv1d.weight", conv, {shape.conv_kernel, inner});
  p.optional_vector("ssm_conv1d.bias", conv_bias, {inner});
  p.matrix("ssm_x.weight", selection, {inner, shape.step_rank + 2 * shape.state_size});
  p.matrix("ssm_dt.weight", step, {shape.step_rank, inner});
  p.vector("ssm_dt.bias", step_bias, {inner});
  p.vector("ssm_a", a, {shape.state_size, inner});
  p.vector("ssm_d", d, {inner});
  p.matrix("ssm_out.weight", out, {inner, width});
  if (shape.norms == StepNorms::with_gain) {
    p.vector("ssm_dt_norm.weight", step_norm, {shape.step_rank});
    p.vector("ssm_b_norm.weight", b_norm, {shape.state_size});
    p.vector("ssm_c_norm.weight", c_norm, {shape.state_size});
  }
}

Tensor mamba1(Graph& g, int32_t layer, Tensor x, const Mamba1& weights, const Mamba1Shape& shape,
              float norm_epsilon) {
  const int32_t inner = shape.inner_width;
  const Tensor projected = g.matmul(weights.in, x);
  const Tensor z = g.columns(projected, inner, inner);
  const Tensor mixed = g.short_conv(layer, g.columns(projected, 0, inner), weights.conv,
                                    weights.conv_bias, shape.conv_kernel);
  const Tensor selected = g.matmul(weights.selection, mixed);
  Tensor step = g.columns(selected, 0, shape.step_rank);
  Tensor b = g.columns(selected, shape.step_rank, shape.state_size);
  Tensor c = g.columns(selected, shape.step_rank + shape.state_size, shape.state_size);
  if (shape.norms != StepNorms::none) {
    step = g.rms_norm(step, weights.step_norm, norm_epsilon);
    b = g.rms_norm(b, weights.b_norm, norm_epsilon);
    c = g.rms_norm(c, weights.c_norm, norm_epsilon);
  }
  const Tensor dt = g.matmul(weights.step, step, weights.step_bias);
  const Tensor y = g.mamba_scan(layer, mixed, b, c, dt, weights.a, weights.d);
  return g.matmul(weights.out, g.gate(z, y, Activation::silu));
}

}  // namespace cairn::blocks
