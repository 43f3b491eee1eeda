// Feed-forward blocks: the gated one, down(activation(gate x) * (up x)), and the plain one,
// down(activation(up x)).
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace cairn::blocks {

struct GatedMlp {
  Weight gate, up, down;
  Weight gate_up;  // Both in one, gate first, where the file has them so.

  // `suffix` is appended to the names: "" or "_shexp" for a shared expert.
  void parameters(Parameters& p, int32_t width, int32_t inner_width, std::string_view suffix = "");
};

// Of models whose files have gate and up in one matrix, under the name of the latter.
struct JoinedMlp : GatedMlp {
  void parameters(Parameters& p, int32_t width, int32_t inner_width);
};

Tensor gated_mlp(Graph& g, Tensor x, const GatedMlp& mlp, Activation activation);

struct PlainMlp {
  Weight up, down;
  Vector up_bias, down_bias;  // Not every model has them.

  void parameters(Parameters& p, int32_t width, int32_t inner_width);
};

Tensor plain_mlp(Graph& g, Tensor x, const PlainMlp& mlp, Activation activation);
// With the square of relu as its activation.
Tensor squared_relu_mlp(Graph& g, Tensor x, const PlainMlp& mlp);

}  // namespace cairn::blocks
