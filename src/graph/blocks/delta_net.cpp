// The gated delta net mixer.
#include "graph/blocks/delta_net.h"

#include <cmath>

namespace cairn::blocks {

namespace {

// Added to the squared length of a query or a key.
constexpr float kLengthEpsilon = 1e-6f;

struct Steps {
  Tensor rate, decay;
};

Steps steps(Graph& g, Tensor x, const DeltaNet& weights, const DeltaNetShape& shape) {
  if (!shape.joined_rates) return {g.matmul(weights.rate, x), g.matmul(weights.decay, x)};
  const int32_t heads_of_key = shape.head_count / shape.key_head_count;
  const Tensor joined = g.matmul(weights.rate_decay, x);
  return {.rate = g.pick_columns(joined, 0, heads_of_key, 2 * heads_of_key),
          .decay = g.pick_columns(joined, heads_of_key, heads_of_key, 2 * heads_of_key)};
}

}  // namespace

State DeltaNetShape::state() const {
  return State::recurrent(
      {int64_t(conv_kernel - 1) * conv_width(), int64_t(head_count) * key_dim * value_dim});
}

void DeltaNet::parameters(Parameters& p, int32_t width, const DeltaNetShape& shape) {
  p.matrix("attn_qkv.weight", qkv, {width, shape.conv_width()});
  p.matrix("attn_gate.weight", gate, {width, shape.value_width()});
  if (shape.joined_rates) {
    p.matrix("ssm_ba.weight", rate_decay, {width, 2 * shape.head_count});
  } else {
    p.matrix("ssm_beta.weight", rate, {width, shape.head_count});
    p.matrix("ssm_alpha.weight", decay, {width, shape.head_count});
  }
  p.vector("ssm_conv1d.weight", conv, {shape.conv_kernel, shape.conv_width()});
  p.vector("ssm_dt.bias", dt_bias, {shape.head_count});
  p.vector("ssm_a", a, {shape.head_count});
  p.vector("ssm_norm.weight", norm, {shape.value_dim});
  p.matrix("ssm_out.weight", out, {shape.value_width(), width});
}

Tensor delta_net(Graph& g, int32_t layer, Tensor x, const DeltaNet& weights,
                 const DeltaNetShape& shape, float norm_epsilon) {
  const int32_t key_width = shape.key_width();
  const float key_dim = float(shape.key_dim);
  const Tensor projected = g.matmul(weights.qkv, x);
  const Tensor z = g.matmul(weights.gate, x);
  const Steps step = steps(g, x, weights, shape);
  const Tensor mixed = g.short_conv(layer, projected, weights.conv, {}, shape.conv_kernel);
  // A root mean square of 1 is a length of sqrt(key_dim); queries are scaled by 1 / sqrt(key_dim)
  // once more, as in attention.
  const Tensor normal =
      g.rms_norm(g.columns(mixed, 0, 2 * key_width), {}, kLengthEpsilon / key_dim, shape.key_dim);
  const GatedDeltaInputs inputs{.q = g.scale(g.columns(normal, 0, key_width), 1.0f / key_dim),
                                .k = g.scale(g.columns(normal, key_width, key_width),
                                             float(1.0 / std::sqrt(double(key_dim)))),
                                .v = g.columns(mixed, 2 * key_width, shape.value_width()),
                                .dt = step.decay,
                                .rate = step.rate};
  const Tensor y = g.gated_delta_scan(layer, inputs,
                                      {.head_count = shape.head_count,
                                       .key_head_count = shape.key_head_count,
                                       .key_dim = shape.key_dim,
                                       .value_dim = shape.value_dim,
                                       .order = shape.order,
                                       .a = weights.a,
                                       .dt_bias = weights.dt_bias});
  const Tensor normed = g.rms_norm(y, weights.norm, norm_epsilon, shape.value_dim);
  return g.matmul(weights.out, g.gate(z, normed, Activation::silu));
}

}  // namespace cairn::blocks
