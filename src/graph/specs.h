// What a model says of an op that takes more than its rows: numbers, rules, and constant
// parameters. Plain data; those with "Inputs" and what a router gives are handles of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "device/op.h"
#include "graph/tensor.h"

namespace cairn {

// Rotary position embedding: pairs of elements are rotated by the angle position * frequency;
// `magnitude` multiplies both the cosine and the sine.
struct RopeSpec {
  RopeStyle style = RopeStyle::halves;
  std::vector<double> frequencies;  // One for each rotated pair.
  double magnitude = 1.0;
};

struct AttentionSpec {
  int32_t head_count = 0;
  float scale = 1.0f;
  float softcap = 0;
  int32_t window = 0;     // 0: all earlier positions.
  bool chunked = false;   // The window is the position's own chunk.
  bool is_causal = true;  // Else later tokens are seen too (op::Attend).
  Constant sinks;
  Constant slopes;  // By head: ALiBi's slopes.
};

struct Mamba2Spec {
  int32_t head_count = 0, head_dim = 0, state_size = 0, group_count = 1;
  Constant a;
  Constant d;
  Constant dt_bias;
};

struct GatedDeltaSpec {
  int32_t head_count = 0, key_head_count = 0, key_dim = 0, value_dim = 0;
  HeadOrder order = HeadOrder::grouped;
  Constant a;
  Constant dt_bias;
};

// What goes into the gated delta rule; q and k normalised and scaled (op::GatedDeltaScan).
struct GatedDeltaInputs {
  Tensor q, k, v, dt, rate;
};

struct ChannelDeltaSpec {
  int32_t head_count = 0, key_dim = 0, value_dim = 0;
  Constant a;
};

// What goes into the delta rule with a decay for each channel (op::ChannelDeltaScan): either
// `rate`, or `asked` and `erased`.
struct ChannelDeltaInputs {
  Tensor q, k, v, log_decay;
  Tensor rate;
  Tensor asked, erased;
};

struct RouterSpec {
  int32_t expert_used_count = 0;
  RouterScore score = RouterScore::softmax_all;
  bool normalize = false;
  float scale = 1.0f;
  Constant selection_bias;
  int32_t group_count = 1, group_used_count = 1, group_best_count = 1;  // See op::Route.
};

struct Routing {
  Tensor chosen, weights;  // [tokens, k] each
};

}  // namespace cairn
