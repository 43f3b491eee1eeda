// Multi-head latent attention.
#include "graph/blocks/latent_attention.h"

namespace cairn::blocks {

namespace {

// The rotated part of queries and keys, in models with positions.
Tensor rotate(Graph& g, Tensor x, const LatentShape& shape, const LatentSpec& spec) {
  return spec.rope.frequencies.empty() ? x : g.rope(x, shape.rotated_dim, spec.rope);
}

// What all heads have of the token: the latent row, and the rotated key that they share.
struct Kept {
  Tensor latent, rotated;
};

Tensor queries(Graph& g, Tensor x, const LatentAttention& weights, const LatentShape& shape,
               const LatentSpec& spec) {
  if (shape.query_rank == 0) return g.matmul(weights.q, x);
  const Tensor down = g.rms_norm(g.matmul(weights.q_down, x), weights.q_norm, spec.norm_epsilon);
  return g.matmul(weights.q_up, down);
}

// Each head's query, in the space of what is kept, and behind it the rotated part.
Tensor kept_queries(Graph& g, Tensor x, const LatentAttention& weights, const LatentShape& shape,
                    const LatentSpec& spec) {
  const Tensor q = queries(g, x, weights, shape, spec);
  const Tensor plain = g.pick_columns(q, 0, shape.plain_dim, shape.key_dim());
  const Tensor rotated = rotate(
      g, g.pick_columns(q, shape.plain_dim, shape.rotated_dim, shape.key_dim()), shape, spec);
  const Tensor joined = shape.keeps_heads
                            ? g.join_columns(plain, shape.plain_dim, rotated, shape.rotated_dim)
                            : g.join_columns(g.matmul_each(weights.k_up, plain, true),
                                             shape.latent_width, rotated, shape.rotated_dim);
  if (spec.temperature_scale == 0) return joined;
  return g.scale_by_position(joined, double(spec.temperature_scale), spec.original_context);
}

// Attention to the rows themselves: the values' sums are brought back behind it.
Tensor attend_rows(Graph& g, int32_t layer, Tensor q, Kept kept, const LatentAttention& weights,
                   const LatentShape& shape, const LatentSpec& spec) {
  const Tensor k = g.join_columns(kept.latent, shape.latent_width, kept.rotated, shape.rotated_dim);
  const Tensor a = g.attend(layer, q, k, {}, {.head_count = shape.head_count, .scale = spec.scale});
  return g.matmul_each(weights.v_up, a, true);
}

Tensor attend_heads(Graph& g, int32_t layer, Tensor q, Kept kept, const LatentAttention& weights,
                    const LatentShape& shape, const LatentSpec& spec) {
  const int32_t plain = shape.plain_dim, value = shape.value_dim;
  const Tensor kv = g.matmul(weights.kv_up, kept.latent);
  const Tensor k = g.join_columns(g.pick_columns(kv, 0, plain, plain + value), plain, kept.rotated,
                                  shape.rotated_dim);
  return g.attend(layer, q, k, g.pick_columns(kv, plain, value, plain + value),
                  {.head_count = shape.head_count, .scale = spec.scale});
}

}  // namespace

void LatentAttention::parameters(Parameters& p, int32_t width, const LatentShape& shape) {
  const int32_t heads = shape.head_count;
  const int32_t q_width = heads * (shape.plain_dim + shape.rotated_dim);
  if (shape.query_rank > 0) {
    p.matrix("attn_q_a.weight", q_down, {width, shape.query_rank});
    p.vector("attn_q_a_norm.weight", q_norm, {shape.query_rank});
    p.matrix("attn_q_b.weight", q_up, {shape.query_rank, q_width});
  } else {
    p.matrix("attn_q.weight", q, {width, q_width});
  }
  p.matrix("attn_kv_a_mqa.weight", latent, {width, shape.latent_width + shape.rotated_dim});
  p.vector("attn_kv_a_norm.weight", latent_norm, {shape.latent_width});
  if (shape.keeps_heads) {
    p.matrix("attn_kv_b.weight", kv_up,
             {shape.latent_width, heads * (shape.plain_dim + shape.value_dim)});
  } else {
    p.matrix("attn_k_b.weight", k_up, {shape.plain_dim, shape.latent_width, heads});
    p.matrix("attn_v_b.weight", v_up, {shape.latent_width, shape.value_dim, heads});
  }
  p.matrix("attn_output.weight", out, {heads * shape.value_dim, width});
}

Tensor latent_attention(Graph& g, int32_t layer, Tensor x, const LatentAttention& weights,
                        const LatentShape& shape, const LatentSpec& spec) {
  const Tensor q = kept_queries(g, x, weights, shape, spec);
  const Tensor row = g.matmul(weights.latent, x);
  const Tensor rotated =
      rotate(g, g.columns(row, shape.latent_width, shape.rotated_dim), shape, spec);
  const Tensor latent =
      g.rms_norm(g.columns(row, 0, shape.latent_width), weights.latent_norm, spec.norm_epsilon);
  const Kept kept{latent, rotated};
  return g.matmul(weights.out, shape.keeps_heads
                                   ? attend_heads(g, layer, q, kept, weights, shape, spec)
                                   : attend_rows(g, layer, q, kept, weights, shape, spec));
}

}  // namespace cairn::blocks
