// What stands around a layer that predicts the token after the next one (multi-token prediction,
// DeepSeek-V3, 2024): h' = layer(eh_proj [enorm(embedding of the next token), hnorm(h)]), and a
// head behind it. h is the hidden row of the token before, which is handed in.
#pragma once

#include "graph/blocks/embedding_and_head.h"
#include "graph/graph.h"

namespace cairn::blocks {

struct Prediction {
  Weight projection;
  Vector embedding_norm, hidden_norm;
  Vector head_norm;        // None: the model's.
  Weight embedding, head;  // Likewise.

  void parameters(Parameters& p, int32_t width, int32_t vocabulary_count);
};

Tensor prediction_input(Graph& g, const Prediction& weights, const EmbeddingAndHead& model,
                        float norm_epsilon);
Tensor prediction_logits(Graph& g, Tensor x, const Prediction& weights,
                         const EmbeddingAndHead& model, float norm_epsilon);

}  // namespace cairn::blocks
