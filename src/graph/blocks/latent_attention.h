// Multi-head latent attention (DeepSeek, 2024): keys and values of all heads come from one latent
// row, which is all that is kept of a token, beside one rotated key that all heads share. The
// matrices that would make keys and values of it stand on the other side: queries are brought into
// the latent space, and what the values' sums are there is brought back. Where a file has the two
// matrices in one piece, every head's keys and values are made of the row, and those are kept.
#pragma once

#include "graph/graph.h"

namespace cairn::blocks {

struct LatentShape {
  int32_t head_count = 0;
  int32_t plain_dim = 0, rotated_dim = 0;  // Of a head's query.
  int32_t value_dim = 0;                   // Of a head.
  int32_t latent_width = 0;
  int32_t query_rank = 0;    // Of the matrix that makes the queries; 0: it is whole.
  bool keeps_heads = false;  // Keys and values of all heads instead of the row.

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
  RopeSpec rope;  // Without frequencies nothing rotates.
  float scale = 1.0f;
  float norm_epsilon = 0;
  float temperature_scale = 0;  // 0: queries do not grow with their position.
  int32_t original_context = 1;
};

Tensor latent_attention(Graph& g, int32_t layer, Tensor x, const LatentAttention& weights,
                        const LatentShape& shape, const LatentSpec& spec);

}  // namespace cairn::blocks
