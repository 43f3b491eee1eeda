// Layer normalisation (Ba et al., 2016) with a gain and, in most models, a bias; and the head of
// the models that use it.
#pragma once

#include <string_view>

#include "graph/blocks/embedding_and_head.h"
#include "graph/graph.h"

namespace cairn::blocks {

struct LayerNorm {
  Vector gain, bias;

  // `name` as in "attn_norm.weight" and "attn_norm.bias".
  void parameters(Parameters& p, std::string_view name, int32_t width);
  // For models in which every norm has both.
  void biased_parameters(Parameters& p, std::string_view name, int32_t width);
};

Tensor layer_norm(Graph& g, Tensor x, const LayerNorm& norm, float epsilon);

// The biases of the last norm and of the output matrix, which few models have.
struct HeadBiases {
  Vector norm, output;

  void parameters(Parameters& p, int32_t width, int32_t vocabulary_count);
};

// Logits of the wanted outputs, or their last hidden rows.
Tensor centred_logits(Graph& g, Tensor x, const EmbeddingAndHead& weights, const HeadBiases& biases,
                      float epsilon);

}  // namespace cairn::blocks
