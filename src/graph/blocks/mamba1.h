// The Mamba mixer (Gu and Dao, 2023): one projection into input and gate; a short causal
// convolution; time steps, B and C projected from its output; the selective scan; a gate; a
// projection back.
#pragma once

#include "graph/graph.h"
#include "memory/state.h"

namespace cairn::blocks {

enum class StepNorms : uint8_t { none, plain, with_gain };

struct Mamba1Shape {
  int32_t inner_width = 0;
  int32_t state_size = 0;
  int32_t step_rank = 0;
  int32_t conv_kernel = 0;
  StepNorms norms = StepNorms::none;  // Of time steps, B and C, before they are used.

  State state() const;  // The convolution's tail, then the scan's state.
};

struct Mamba1 {
  Weight in, selection, step, out;
  Vector conv, conv_bias, step_bias, a, d, step_norm, b_norm, c_norm;

  void parameters(Parameters& p, int32_t width, const Mamba1Shape& shape);
};

// `norm_epsilon` is that of the norms of time steps, B and C.
Tensor mamba1(Graph& g, int32_t layer, Tensor x, const Mamba1& weights, const Mamba1Shape& shape,
              float norm_epsilon);

}  // namespace cairn::blocks
