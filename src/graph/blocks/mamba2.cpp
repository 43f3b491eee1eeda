// The Mamba-2 mixer.
#include "graph/blocks/mamba2.h"

namespace cairn::blocks {

State Mamba2Shape::state() const {
  return State::recurrent(
      {int64_t(conv_kernel - 1) * conv_width(), int64_t(head_count) * state_size * head_dim()});
}

void Mamba2::parameters(Parameters& p, int32_t width, const Mamba2Shape& shape) {
  const int32_t in_width = shape.inner_width + shape.conv_width() + shape.head_count;
  p.matrix("ssm_in.weight", in, {width, in_width});
  p.vector("ssm_conv1d.weight", conv, {shape.conv_kernel, shape.conv_width()});
  p.optional_vector("ssm_conv1d.bias", conv_bias, {shape.conv_width()});
  p.vector("ssm_dt.bias", dt_bias, {shape.head_count});
  p.vector("ssm_a", a, {1, shape.head_count});
  p.vector("ssm_d", d, {1, shape.head_count});
  const int32_t group_width = shape.inner_width / shape.group_count;
  if (shape.needs_norm) {
    p.vector("ssm_norm.weight", norm, {group_width, shape.group_count});
  } else {
    p.optional_vector("ssm_norm.weight", norm, {group_width, shape.group_count});
  }
  p.matrix("ssm_out.weight", out, {shape.inner_width, width});
}

Tensor mamba2(Graph& g, int32_t layer, Tensor x, const Mamba2& weights, const Mamba2Shape& shape,
              float norm_epsilon) {
  const int32_t inner = shape.inner_width;
  const int32_t bc_width = shape.group_count * shape.state_size;
  const Tensor projected = g.matmul(weights.in, x);
  const Tensor z = g.columns(projected, 0, inner);
  const Tensor dt = g.columns(projected, inner + shape.conv_width(), shape.head_count);
  const Tensor mixed = g.short_conv(layer, g.columns(projected, inner, shape.conv_width()),
                                    weights.conv, weights.conv_bias, shape.conv_kernel);
  const Tensor y =
      g.mamba2_scan(layer, g.columns(mixed, 0, inner), g.columns(mixed, inner, bc_width),
                    g.columns(mixed, inner + bc_width, bc_width), dt,
                    {.head_count = shape.head_count,
                     .head_dim = shape.head_dim(),
                     .state_size = shape.state_size,
                     .group_count = shape.group_count,
                     .a = weights.a,
                     .d = weights.d,
                     .dt_bias = weights.dt_bias});
  const Tensor gated = g.gate(z, y, Activation::silu);
  if (!weights.norm.exists()) return g.matmul(weights.out, gated);
  return g.matmul(weights.out,
                  g.rms_norm(gated, weights.norm, norm_epsilon, inner / shape.group_count));
}

}  // namespace cairn::blocks
