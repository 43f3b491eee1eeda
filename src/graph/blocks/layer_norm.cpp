// Layer normalisation, and the head of models that use it.
#include "graph/blocks/layer_norm.h"

#include <fmt/core.h>

namespace cairn::blocks {

void LayerNorm::parameters(Parameters& p, std::string_view name, int32_t width) {
  p.vector(fmt::format("{}.weight", name), gain, {width});
  p.optional_vector(fmt::format("{}.bias", name), bias, {width});
}

void LayerNorm::biased_parameters(Parameters& p, std::string_view name, int32_t width) {
  p.vector(fmt::format("{}.weight", name), gain, {width});
  p.vector(fmt::format("{}.bias", name), bias, {width});
}

Tensor layer_norm(Graph& g, Tensor x, const LayerNorm& norm, float epsilon) {
  return g.layer_norm(x, norm.gain, norm.bias, epsilon);
}

void HeadBiases::parameters(Parameters& p, int32_t width, int32_t vocabulary_count) {
  p.optional_vector("output_norm.bias", norm, {width});
  p.optional_vector("output.bias", output, {vocabulary_count});
}

Tensor centred_logits(Graph& g, Tensor x, const EmbeddingAndHead& weights, const HeadBiases& biases,
                      float epsilon) {
  const Tensor last = g.layer_norm(g.outputs(x), weights.norm, biases.norm, epsilon);
  if (g.output_kind() != OutputKind::logits) return g.set_output(last);
  return g.matmul(weights.output.exists() ? weights.output : weights.embedding, last,
                  biases.output);
}

}  // namespace cairn::blocks
