// Feed-forward blocks.
#include "graph/blocks/mlp.h"

#include <fmt/core.h>

namespace cairn::blocks {

void GatedMlp::parameters(Parameters& p, int32_t width, int32_t inner_width,
                          std::string_view suffix) {
  p.matrix(fmt::format("ffn_gate{}.weight", suffix), gate, {width, inner_width});
  p.matrix(fmt::format("ffn_up{}.weight", suffix), up, {width, inner_width});
  p.matrix(fmt::format("ffn_down{}.weight", suffix), down, {inner_width, width});
}

void JoinedMlp::parameters(Parameters& p, int32_t width, int32_t inner_width) {
  p.matrix("ffn_up.weight", gate_up, {width, 2 * inner_width});
  p.matrix("ffn_down.weight", down, {inner_width, width});
}

Tensor gated_mlp(Graph& g, Tensor x, const GatedMlp& mlp, Activation activation) {
  if (mlp.gate_up.exists()) {
    const Tensor both = g.matmul(mlp.gate_up, x);
    return g.matmul(mlp.down, g.gate_runs(both, mlp.gate_up.rows / 2, activation));
  }
  const Tensor gate = g.matmul(mlp.gate, x);
  const Tensor up = g.matmul(mlp.up, x);
  return g.matmul(mlp.down, g.gate(gate, up, activation));
}

void PlainMlp::parameters(Parameters& p, int32_t width, int32_t inner_width) {
  p.matrix("ffn_up.weight", up, {width, inner_width});
  p.matrix("ffn_down.weight", down, {inner_width, width});
  p.optional_vector("ffn_up.bias", up_bias, {inner_width});
  p.optional_vector("ffn_down.bias", down_bias, {width});
}

Tensor plain_mlp(Graph& g, Tensor x, const PlainMlp& mlp, Activation activation) {
  const Tensor inner = g.activate(g.matmul(mlp.up, x, mlp.up_bias), activation);
  return g.matmul(mlp.down, inner, mlp.down_bias);
}

Tensor squared_relu_mlp(Graph& g, Tensor x, const PlainMlp& mlp) {
  const Tensor inner = g.matmul(mlp.up, x, mlp.up_bias);
  return g.matmul(mlp.down, g.gate(inner, inner, Activation::relu), mlp.down_bias);
}

}  // namespace cairn::blocks
