// The gated delta net mixer (Yang et al., 2024): projections into queries, keys and values, into an
// output gate and into a decay and a rate for each head; a short causal convolution; L2
// normalisation of keys and queries; the delta rule; a gated norm of each head; a projection back.
#pragma once

#include "graph/graph.h"
#include "memory/state.h"

namespace cairn::blocks {

struct DeltaNetShape {
  int32_t head_count = 0;  // Of values; a multiple of the keys'.
  int32_t key_head_count = 0;
  int32_t key_dim = 0, value_dim = 0;
  int32_t conv_kernel = 0;
  HeadOrder order = HeadOrder::grouped;
  // Rates and decays come from one matrix: for each key head the rates of its value heads, then
  // their decays. Needs grouped heads.
  bool joined_rates = false;

  int32_t key_width() const { return key_head_count * key_dim; }
  int32_t value_width() const { return head_count * value_dim; }
  int32_t conv_width() const { return 2 * key_width() + value_width(); }
  State state() const;  // The convolution's tail, then the recurrence's state.
};

struct DeltaNet {
  Weight qkv, gate, rate, decay, rate_decay, out;
  Vector conv, dt_bias, a, norm;

  void parameters(Parameters& p, int32_t width, const DeltaNetShape& shape);
};

Tensor delta_net(Graph& g, int32_t layer, Tensor x, const DeltaNet& weights,
                 const DeltaNetShape& shape, float norm_epsilon);

}  // namespace cairn::blocks
