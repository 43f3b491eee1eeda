// The Mamba-2 mixer (Dao and Gu, 2024): one projection into gate, convolution input and time steps;
// a short causal convolution; the recurrence; a gate and, in most models, a norm; a projection
// back.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "memory/state.h"

namespace cairn::blocks {

struct Mamba2Shape {
  int32_t inner_width = 0;  // head_count * head_dim
  int32_t head_count = 0;
  int32_t state_size = 0;
  int32_t group_count = 1;
  int32_t conv_kernel = 0;
  bool needs_norm = true;  // False: the norm is optional in the file.

  int32_t head_dim() const { return inner_width / head_count; }
  int32_t conv_width() const { return inner_width + 2 * group_count * state_size; }
  State state() const;  // The convolution's tail, then the recurrence's state.
};

struct Mamba2 {
  Weight in, out;
  Vector conv, conv_bias, dt_bias, a, d, norm;

  void parameters(Parameters& p, int32_t width, const Mamba2Shape& shape);
};

Tensor mamba2(Graph& g, int32_t layer, Tensor x, const Mamba2& weights, const Mamba2Shape& shape,
              float norm_epsilon);

}  // namespace cairn::blocks
