// A mixture of experts.
#include "graph/blocks/experts.h"

namespace cairn::blocks {

void Experts::parameters(Parameters& p, int32_t width, int32_t inner_width, int32_t expert_count) {
  p.matrix("ffn_gate_inp.weight", router, {width, expert_count});
  p.matrix("ffn_gate_exps.weight", gate, {width, inner_width, expert_count});
  p.matrix("ffn_up_exps.weight", up, {width, inner_width, expert_count});
  p.matrix("ffn_down_exps.weight", down, {inner_width, width, expert_count});
}

Tensor mixture(Graph& g, Tensor x, const Experts& experts, const RouterSpec& spec,
               Activation activation) {
  const Routing routing = g.route(g.matmul(experts.router, x), spec);
  const Tensor gate = g.expert_matmul(experts.gate, x, routing, false);
  const Tensor up = g.expert_matmul(experts.up, x, routing, false);
  const Tensor inner = g.gate(gate, up, activation);
  return g.expert_sum(g.expert_matmul(experts.down, inner, routing, true), routing);
}

}  // namespace cairn::blocks
