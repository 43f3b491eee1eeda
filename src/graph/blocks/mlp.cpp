// The gated feed-forward block.
#include "graph/blocks/mlp.h"

#include <fmt/core.h>

namespace cairn::blocks {

void GatedMlp::parameters(Parameters& p, int32_t width, int32_t inner_width,
                          std::string_view suffix) {
  p.matrix(fmt::format("ffn_gate{}.weight", suffix), gate, {width, inner_width});
  p.matrix(fmt::format("ffn_up{}.weight", suffix), up, {width, inner_width});
  p.matrix(fmt::format("ffn_down{}.weight", suffix), down, {inner_width, width});
}

Tensor gated_mlp(Graph& g, Tensor x, const GatedMlp& mlp, Activation activation) {
  const Tensor gate = g.matmul(mlp.gate, x);
  const Tensor up = g.matmul(mlp.up, x);
  return g.matmul(mlp.down, g.gate(gate, up, activation));
}

}  // namespace cairn::blocks
