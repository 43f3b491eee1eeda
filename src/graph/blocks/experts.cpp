// A mixture of experts.
#include "graph/blocks/experts.h"

namespace cairn::blocks {

void Experts::parameters(Parameters& p, int32_t width, int32_t inner_width, int32_t expert_count) {
  p.matrix("ffn_gate_inp.weight", router, {width, expert_count});
  expert_parameters(p, width, inner_width, expert_count);
}

void Experts::expert_parameters(Parameters& p, int32_t width, int32_t inner_width,
                                int32_t expert_count) {
  p.optional_matrix("ffn_gate_up_exps.weight", gate_up, {width, 2 * inner_width, expert_count});
  if (gate_up.exists()) {
    p.optional_vector("ffn_gate_up_exps.bias", gate_up_bias, {2 * inner_width, expert_count});
  } else {
    p.matrix("ffn_gate_exps.weight", gate, {width, inner_width, expert_count});
    p.matrix("ffn_up_exps.weight", up, {width, inner_width, expert_count});
    p.optional_vector("ffn_gate_exps.bias", gate_bias, {inner_width, expert_count});
    p.optional_vector("ffn_up_exps.bias", up_bias, {inner_width, expert_count});
  }
  p.matrix("ffn_down_exps.weight", down, {inner_width, width, expert_count});
  p.optional_vector("ffn_gate_inp.bias", router_bias, {expert_count});
  p.optional_vector("ffn_down_exps.bias", down_bias, {width, expert_count});
}

Tensor mixture(Graph& g, Tensor x, const Experts& experts, const RouterSpec& spec,
               Activation activation) {
  return mixture(g, x, experts, g.route(g.matmul(experts.router, x, experts.router_bias), spec),
                 activation);
}

Tensor mixture(Graph& g, Tensor x, const Experts& experts, const Routing& routing,
               Activation activation) {
  return g.expert_sum(expert_outputs(g, x, experts, routing, activation, false), routing);
}

Tensor expert_outputs(Graph& g, Tensor x, const Experts& experts, const Routing& routing,
                      Activation activation, bool x_per_rank) {
  Tensor inner;
  if (experts.gate_up.exists()) {
    const Tensor both =
        g.expert_matmul(experts.gate_up, x, routing, x_per_rank, experts.gate_up_bias);
    inner = g.gate_runs(both, experts.gate_up.rows / 2, activation);
  } else {
    const Tensor gate = g.expert_matmul(experts.gate, x, routing, x_per_rank, experts.gate_bias);
    const Tensor up = g.expert_matmul(experts.up, x, routing, x_per_rank, experts.up_bias);
    inner = g.gate(gate, up, activation);
  }
  return g.expert_matmul(experts.down, inner, routing, true, experts.down_bias);
}

void SharedExpert::parameters(Parameters& p, int32_t width, int32_t inner_width) {
  p.matrix("ffn_gate_inp_shexp.weight", router, {width, 1});
  mlp.parameters(p, width, inner_width, "_shexp");
}

// A router over one expert always chooses it; its weight is the gate.
Tensor shared_expert(Graph& g, Tensor x, const SharedExpert& expert, Activation activation) {
  const RouterSpec gate{.expert_used_count = 1, .score = RouterScore::sigmoid};
  const Routing routing = g.route(g.matmul(expert.router, x), gate);
  return g.expert_sum(gated_mlp(g, x, expert.mlp, activation), routing);
}

}  // namespace cairn::blocks
