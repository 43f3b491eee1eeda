// Per-layer embeddings (Gemma 3n): each token has a row with a part for each layer, from a table of
// its own and a projection of the embedding. Each layer gates its part by the residual stream,
// projects it and adds the result to the stream.
#pragma once

#include "graph/graph.h"

namespace cairn::blocks {

struct LayerInputs {
  Weight table, projection;
  Vector norm;

  void parameters(Parameters& p, int32_t width, int32_t part_width, int32_t layer_count,
                  int32_t vocabulary_count);
};

// The parts of all layers side by side. `embedded`: the embeddings as the first layer reads them.
Tensor layer_inputs(Graph& g, Tensor embedded, const LayerInputs& inputs, float norm_epsilon);

struct LayerInputGate {
  Weight gate, projection;
  Vector norm;

  void parameters(Parameters& p, int32_t width, int32_t part_width);
};

// What a layer adds to the stream: `x` is the stream, or the row used in its place; `part` the
// layer's part.
Tensor gated_layer_input(Graph& g, Tensor x, Tensor part, const LayerInputGate& weights,
                         float norm_epsilon);

}  // namespace cairn::blocks
