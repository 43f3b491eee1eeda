// The embedding table and the head of a decoder.
#include "graph/blocks/embedding_and_head.h"

#include <cmath>

namespace cairn::blocks {

void EmbeddingAndHead::parameters(Parameters& p, int32_t width, int32_t vocabulary_count,
                                  std::string_view norm_name) {
  p.matrix("token_embd.weight", embedding, {width, vocabulary_count});
  if (!norm_name.empty()) p.vector(norm_name, norm, {width});
  p.optional_matrix("output.weight", output, {width, vocabulary_count});
}

float root_of(int32_t width) {
  return float(std::sqrt(double(width)));
}

Tensor softcap(Graph& g, Tensor x, float cap) {
  if (cap == 0) return x;
  return g.scale(g.activate(g.scale(x, 1.0f / cap), Activation::tanh), cap);
}

Tensor logits(Graph& g, Tensor x, const EmbeddingAndHead& weights, float norm_epsilon) {
  const Tensor last = g.rms_norm(g.outputs(x), weights.norm, norm_epsilon);
  if (g.output_kind() != OutputKind::logits) return g.set_output(last);
  return g.matmul(weights.output.exists() ? weights.output : weights.embedding, last);
}

}  // namespace cairn::blocks
