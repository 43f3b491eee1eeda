// Multi-head latent attention (DeepSeek, 2024): the cache holds one latent row for each token, and
// one rotated key that all heads share. The up-projections of keys and values are absorbed: queries
// are projected into the latent space, and the weighted sums of latent rows are projected back. If
// a file has both up-projections in one matrix, the keys and values of every head are computed and
// cached instead.
#pragma once

#include "graph/graph.h"

namespace cairn::blocks {

struct LatentShape {
  int32_t head_count = 0;
  int32_t plain_dim = 0, rotated_dim = 0;  // Of a head's query.
  int32_t value_dim = 0;                   // Of a head.
  int32_t latent_width = 0;
  int32_t query_rank = 0;    // Of the query projection; 0: it is not factored.
  bool keeps_heads = false;  // Caches keys and values of all heads, not the row.

  int32_t key_dim() const { return plain_dim + rotated_dim; }
  State state() const {
    if (keeps_heads) return State::full(head_count, key_dim(), value_dim);
    return State::latent(latent_width + rotated_dim, latent_width);
  }
};

struct LatentAttention {
  Weight q, q_down, q_up, latent, k_up, v_up, out;
  Weight kv_up;  // Both in one, each head's keys first, where keys and values of heads are kept.
  Vector q_norm, latent_norm;

  void parameters(Parameters& p, int32_t width, const LatentShape& shape);
};

struct LatentSpec {
  RopeSpec rope;  // Without frequencies there is no rotation.
  float scale = 1.0f;
  float norm_epsilon = 0;
  float temperature_scale = 0;  // 0: queries are not scaled by their position.
  int32_t original_context = 1;
};

Tensor latent_attention(Graph& g, int32_t layer, Tensor x, const LatentAttention& weights,
                        const LatentShape& shape, const LatentSpec& spec);

}  // namespace cairn::blocks
