// The four projections around attention, with the biases that some models have, and what happens to
// queries and keys between them.
#pragma once

#include "graph/graph.h"

namespace cairn::blocks {

struct QkvWidths {
  int32_t q = 0, k = 0, v = 0;

  int32_t all() const { return q + k + v; }
};

struct AttentionShape {
  int32_t head_count = 0;
  int32_t kv_head_count = 0;
  int32_t key_dim = 0;
  int32_t value_dim = 0;

  QkvWidths widths() const {
    return {head_count * key_dim, kv_head_count * key_dim, kv_head_count * value_dim};
  }
  // `window`: how many tokens a position sees, 0 for all of them.
  State state(int32_t window = 0) const {
    return window == 0 ? State::full(kv_head_count, key_dim, value_dim)
                       : State::windowed(window, kv_head_count, key_dim, value_dim);
  }
};

struct Qkv {
  Tensor q, k, v;
};

// The three before attention.
struct QkvProjections {
  Weight q, k, v;
  Weight qkv;  // All three in one, in this order, where the file has them so.
  Vector q_bias, k_bias, v_bias, qkv_bias;

  void parameters(Parameters& p, int32_t width, const QkvWidths& to);
  Qkv project(Graph& g, Tensor x, const QkvWidths& to) const;
};

struct Projections : QkvProjections {
  Weight out;
  Vector out_bias;

  void parameters(Parameters& p, int32_t width, const AttentionShape& shape);

  Qkv project(Graph& g, Tensor x, const AttentionShape& shape) const;
  // Attention, and what the last projection makes of it.
  Tensor attend(Graph& g, int32_t layer, const Qkv& qkv, const AttentionSpec& spec) const;
};

// Gains of the norms of queries and of keys.
struct QkNorms {
  Vector q, k;

  // Widths of heads where all heads have the same gains, else of all heads together.
  void parameters(Parameters& p, int32_t q_width, int32_t k_width);
};

// Queries and keys normalised, each `group` columns by themselves; 0 means all heads together.
Qkv rms_normed(Graph& g, const Qkv& qkv, const QkNorms& norms, float epsilon, int32_t group);
// Queries and keys rotated.
Qkv rotated(Graph& g, const Qkv& qkv, int32_t head_dim, const RopeSpec& rope);

// All three within [-limit, limit]; as they are where the limit is 0.
Qkv clamped(Graph& g, const Qkv& qkv, float limit);

}  // namespace cairn::blocks
