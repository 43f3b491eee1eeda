// Attention with a gate on its output.
#include "graph/blocks/gated_attention.h"

#include "base/check.h"

namespace cairn::blocks {
namespace {

QkvWidths widths_with_gates(const AttentionShape& shape) {
  QkvWidths widths = shape.widths();
  widths.q *= 2;
  return widths;
}

}  // namespace

void GatedAttention::parameters(Parameters& p, int32_t width, const AttentionShape& shape) {
  in.parameters(p, width, widths_with_gates(shape));
  p.matrix("attn_output.weight", out, {shape.head_count * shape.value_dim, width});
  p.vector("attn_q_norm.weight", q_norm, {shape.key_dim});
  p.vector("attn_k_norm.weight", k_norm, {shape.key_dim});
}

Tensor gated_attention(Graph& g, int32_t layer, Tensor x, const GatedAttention& weights,
                       const RopeSpec& rope, const GatedAttentionSpec& spec) {
  const int32_t dim = spec.shape.key_dim;
  CHECK(dim == spec.shape.value_dim);
  const auto [queries_and_gates, keys, v] = weights.in.project(g, x, widths_with_gates(spec.shape));
  const Tensor gate = g.pick_columns(queries_and_gates, dim, dim, 2 * dim);
  const Tensor q = g.rms_norm(g.pick_columns(queries_and_gates, 0, dim, 2 * dim), weights.q_norm,
                              spec.norm_epsilon, dim);
  const Tensor k = g.rms_norm(keys, weights.k_norm, spec.norm_epsilon, dim);
  const Tensor a = g.attend(layer, g.rope(q, dim, rope), g.rope(k, dim, rope), v,
                            {.head_count = spec.shape.head_count, .scale = spec.scale});
  return g.matmul(weights.out, g.gate(gate, a, Activation::sigmoid));
}

}  // namespace cairn::blocks
