// The projections around attention.
#include "graph/blocks/attention.h"

namespace cairn::blocks {

void Projections::parameters(Parameters& p, int32_t width, const AttentionShape& shape) {
  const int32_t q_width = shape.head_count * shape.key_dim;
  const int32_t k_width = shape.kv_head_count * shape.key_dim;
  const int32_t v_width = shape.kv_head_count * shape.value_dim;
  p.matrix("attn_q.weight", q, {width, q_width});
  p.matrix("attn_k.weight", k, {width, k_width});
  p.matrix("attn_v.weight", v, {width, v_width});
  p.matrix("attn_output.weight", out, {shape.head_count * shape.value_dim, width});
  p.optional_vector("attn_q.bias", q_bias, {q_width});
  p.optional_vector("attn_k.bias", k_bias, {k_width});
  p.optional_vector("attn_v.bias", v_bias, {v_width});
  p.optional_vector("attn_output.bias", out_bias, {width});
}

void Projections::joinable_parameters(Parameters& p, int32_t width, const AttentionShape& shape) {
  const int32_t qkv_width =
      shape.head_count * shape.key_dim + shape.kv_head_count * (shape.key_dim + shape.value_dim);
  p.optional_matrix("attn_qkv.weight", qkv, {width, qkv_width});
  if (!qkv.exists()) return parameters(p, width, shape);
  p.optional_vector("attn_qkv.bias", qkv_bias, {qkv_width});
  p.matrix("attn_output.weight", out, {shape.head_count * shape.value_dim, width});
  p.optional_vector("attn_output.bias", out_bias, {width});
}

Qkv Projections::project(Graph& g, Tensor x, const AttentionShape& shape) const {
  if (!qkv.exists()) {
    return {.q = g.matmul(q, x, q_bias), .k = g.matmul(k, x, k_bias), .v = g.matmul(v, x, v_bias)};
  }
  const int32_t q_width = shape.head_count * shape.key_dim;
  const int32_t k_width = shape.kv_head_count * shape.key_dim;
  const Tensor all = g.matmul(qkv, x, qkv_bias);
  return {.q = g.columns(all, 0, q_width),
          .k = g.columns(all, q_width, k_width),
          .v = g.columns(all, q_width + k_width, shape.kv_head_count * shape.value_dim)};
}

Qkv clamped(Graph& g, const Qkv& qkv, float limit) {
  if (limit == 0) return qkv;
  return {.q = g.clamp(qkv.q, limit), .k = g.clamp(qkv.k, limit), .v = g.clamp(qkv.v, limit)};
}

}  // namespace cairn::blocks
