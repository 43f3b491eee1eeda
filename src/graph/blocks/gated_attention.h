// Attention whose output has a gate for each element (Qiu et al., 2025): the query projection gives
// each head's query and, after it, the head's gate. Queries and keys are normalised by head.
#pragma once

#include "graph/blocks/attention.h"
#include "graph/graph.h"

namespace cairn::blocks {

struct GatedAttention {
  QkvProjections in;
  Weight out;
  Vector q_norm, k_norm;

  void parameters(Parameters& p, int32_t width, const AttentionShape& shape);
};

struct GatedAttentionSpec {
  AttentionShape shape;
  float scale = 1.0f;
  float norm_epsilon = 0;
};

Tensor gated_attention(Graph& g, int32_t layer, Tensor x, const GatedAttention& weights,
                       const RopeSpec& rope, const GatedAttentionSpec& spec);

}  // namespace cairn::blocks
