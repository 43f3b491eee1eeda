// The norm around the mean (Ba et al., 2016) with a gain and, in most models, a bias; and the end
// of the models that have it.
#pragma once

#include <string_view>

#include "graph/blocks/ends.h"
#include "graph/graph.h"

namespace cairn::blocks {

struct LayerNorm {
  Vector gain, bias;

  // `name` as in "attn_norm.weight" and "attn_norm.bias".
  void parameters(Parameters& p, std::string_view name, int32_t width);
  // Of models that have both everywhere.
  void biased_parameters(Parameters& p, std::string_view name, int32_t width);
};

Tensor layer_norm(Graph& g, Tensor x, const LayerNorm& norm, float epsilon);

// What Ends does not have: the biases of the last norm and of the output matrix.
struct EndBiases {
  Vector norm, output;

  void parameters(Parameters& p, int32_t width, int32_t vocabulary_count);
};

// Logits of the wanted outputs, or the vectors that they are made of.
Tensor centred_logits(Graph& g, Tensor x, const Ends& ends, const EndBiases& biases, float epsilon);

}  // namespace cairn::blocks
