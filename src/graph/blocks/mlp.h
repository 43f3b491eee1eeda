// The gated feed-forward block: down(activation(gate x) * (up x)).
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace cairn::blocks {

struct GatedMlp {
  Weight gate, up, down;

  // `suffix` follows the usual names: "" or "_shexp" for a shared expert.
  void parameters(Parameters& p, int32_t width, int32_t inner_width, std::string_view suffix = "");
};

Tensor gated_mlp(Graph& g, Tensor x, const GatedMlp& mlp, Activation activation);

}  // namespace cairn::blocks
