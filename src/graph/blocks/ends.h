// Where a decoder begins and ends: the embedding table, the last norm, and the output matrix, which
// is the embedding table again where the file has none of its own.
#pragma once

#include "graph/graph.h"

namespace cairn::blocks {

struct Ends {
  Weight embedding, output;
  Vector norm;

  void parameters(Parameters& p, int32_t width, int32_t vocabulary_count);
};

// Logits of the wanted outputs.
Tensor logits(Graph& g, Tensor x, const Ends& ends, float norm_epsilon);

}  // namespace cairn::blocks
