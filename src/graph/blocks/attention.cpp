// The projections around attention.
#include "graph/blocks/attention.h"

namespace cairn::blocks {

void QkvProjections::parameters(Parameters& p, int32_t width, const QkvWidths& to) {
  p.optional_matrix("attn_qkv.weight", qkv, {width, to.all()});
  if (qkv.exists()) return p.optional_vector("attn_qkv.bias", qkv_bias, {to.all()});
  p.matrix("attn_q.weight", q, {width, to.q});
  p.matrix("attn_k.weight", k, {width, to.k});
  p.matrix("attn_v.weight", v, {width, to.v});
  p.optional_vector("attn_q.bias", q_bias, {to.q});
  p.optional_vector("attn_k.bias", k_bias, {to.k});
  p.optional_vector("attn_v.bias", v_bias, {to.v});
}

Qkv QkvProjections::project(Graph& g, Tensor x, const QkvWidths& to) const {
  if (!qkv.exists()) {
    return {.q = g.matmul(q, x, q_bias), .k = g.matmul(k, x, k_bias), .v = g.matmul(v, x, v_bias)};
  }
  const Tensor all = g.matmul(qkv, x, qkv_bias);
  return {.q = g.columns(all, 0, to.q),
          .k = g.columns(all, to.q, to.k),
          .v = g.columns(all, to.q + to.k, to.v)};
}

void Projections::parameters(Parameters& p, int32_t width, const AttentionShape& shape) {
  QkvProjections::parameters(p, width, shape.widths());
  p.matrix("attn_output.weight", out, {shape.head_count * shape.value_dim, width});
  p.optional_vector("attn_output.bias", out_bias, {width});
}

Qkv Projections::project(Graph& g, Tensor x, const AttentionShape& shape) const {
  return QkvProjections::project(g, x, shape.widths());
}

Tensor Projections::attend(Graph& g, int32_t layer, const Qkv& rows,
                           const AttentionSpec& spec) const {
  return g.matmul(out, g.attend(layer, rows.q, rows.k, rows.v, spec), out_bias);
}

void QkNorms::parameters(Parameters& p, int32_t q_width, int32_t k_width) {
  p.vector("attn_q_norm.weight", q, {q_width});
  p.vector("attn_k_norm.weight", k, {k_width});
}

Qkv rms_normed(Graph& g, const Qkv& qkv, const QkNorms& norms, float epsilon, int32_t group) {
  return {.q = g.rms_norm(qkv.q, norms.q, epsilon, group),
          .k = g.rms_norm(qkv.k, norms.k, epsilon, group),
          .v = qkv.v};
}

Qkv rotated(Graph& g, const Qkv& qkv, int32_t head_dim, const RopeSpec& rope) {
  return {.q = g.rope(qkv.q, head_dim, rope), .k = g.rope(qkv.k, head_dim, rope), .v = qkv.v};
}

Qkv clamped(Graph& g, const Qkv& qkv, float limit) {
  if (limit == 0) return qkv;
  return {.q = g.clamp(qkv.q, limit), .k = g.clamp(qkv.k, limit), .v = g.clamp(qkv.v, limit)};
}

}  // namespace cairn::blocks
