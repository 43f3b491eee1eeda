// Inputs of each layer besides the residual stream.
#include "graph/blocks/layer_inputs.h"

#include <cmath>

namespace cairn::blocks {

void LayerInputs::parameters(Parameters& p, int32_t width, int32_t part_width, int32_t layer_count,
                             int32_t vocabulary_count) {
  const int64_t all_width = int64_t(part_width) * layer_count;
  p.matrix("per_layer_token_embd.weight", table, {all_width, vocabulary_count});
  p.matrix("per_layer_model_proj.weight", projection, {width, all_width});
  p.vector("per_layer_proj_norm.weight", norm, {part_width});
}

Tensor layer_inputs(Graph& g, Tensor embedded, const LayerInputs& inputs, float norm_epsilon) {
  const int32_t part_width = int32_t(inputs.norm.values.size());
  const float token_scale = float(std::sqrt(double(part_width)));
  const float context_scale = float(1.0 / std::sqrt(double(embedded.width)));
  const Tensor context = g.scale(g.matmul(inputs.projection, embedded), context_scale);
  const Tensor normal = g.rms_norm(context, inputs.norm, norm_epsilon, part_width);
  return g.scale(g.add(normal, g.embed(inputs.table, token_scale)), float(std::sqrt(0.5)));
}

void LayerInputGate::parameters(Parameters& p, int32_t width, int32_t part_width) {
  p.matrix("inp_gate.weight", gate, {width, part_width});
  p.matrix("proj.weight", projection, {part_width, width});
  p.vector("post_norm.weight", norm, {width});
}

Tensor gated_layer_input(Graph& g, Tensor x, Tensor part, const LayerInputGate& weights,
                         float norm_epsilon) {
  const Tensor gated = g.gate(g.matmul(weights.gate, x), part, Activation::gelu_tanh);
  return g.rms_norm(g.matmul(weights.projection, gated), weights.norm, norm_epsilon);
}

}  // namespace cairn::blocks
