// A decoder's embedding table and head: the last norm and the output matrix, which is the embedding
// table again (tied) if the file has no other.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace cairn::blocks {

struct EmbeddingAndHead {
  Weight embedding, output;
  Vector norm;

  // With an empty `norm_name` the last norm has no parameters.
  void parameters(Parameters& p, int32_t width, int32_t vocabulary_count,
                  std::string_view norm_name = "output_norm.weight");
};

// The factor of embeddings in models that scale them by the root of their width, rounded once.
float root_of(int32_t width);

// cap * tanh(x / cap), which keeps x within +-cap; x itself where cap is 0.
Tensor softcap(Graph& g, Tensor x, float cap);

// Logits of the wanted outputs, or their last hidden rows.
Tensor logits(Graph& g, Tensor x, const EmbeddingAndHead& weights, float norm_epsilon);

}  // namespace cairn::blocks
