// A mixture of experts: a router picks k of the experts for each token; their gated feed-forward
// outputs are added in the order of the router's ranks.
#pragma once

#include "graph/blocks/mlp.h"
#include "graph/graph.h"

namespace cairn::blocks {

struct Experts {
  Weight router, gate, up, down;
  Weight gate_up;  // Both in one, gate first, where the file has them so.
  Vector router_bias, gate_bias, up_bias, gate_up_bias, down_bias;  // Few models have them.

  void parameters(Parameters& p, int32_t width, int32_t inner_width, int32_t expert_count);
  // All but the router, for models that list the router's parameters themselves.
  void expert_parameters(Parameters& p, int32_t width, int32_t inner_width, int32_t expert_count);
};

// A shared expert that every token uses, multiplied by a gate: the sigmoid of one number.
struct SharedExpert {
  Weight router;
  GatedMlp mlp;

  void parameters(Parameters& p, int32_t width, int32_t inner_width);
};

Tensor shared_expert(Graph& g, Tensor x, const SharedExpert& expert, Activation activation);

Tensor mixture(Graph& g, Tensor x, const Experts& experts, const RouterSpec& spec,
               Activation activation);
// The same with a routing that was computed elsewhere.
Tensor mixture(Graph& g, Tensor x, const Experts& experts, const Routing& routing,
               Activation activation);
// The experts' outputs side by side, [tokens, k * width]: neither weighted nor added.
Tensor expert_outputs(Graph& g, Tensor x, const Experts& experts, const Routing& routing,
                      Activation activation, bool x_per_rank);

}  // namespace cairn::blocks
