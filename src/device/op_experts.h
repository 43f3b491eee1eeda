// The ops of a mixture of experts: routing, the experts' products, and the weighted sum of their
// outputs. A part of the closed list of device/op.h, with its rules.
#pragma once

#include <cstdint>

#include "device/constant.h"
#include "device/values.h"
#include "device/weight.h"

namespace cairn {

enum class RouterScore : uint8_t {
  softmax_all,     // Softmax over all experts, then the k largest.
  softmax_chosen,  // The k largest, then softmax over these.
  sigmoid,         // A sigmoid each, then the k largest.
  sigmoid_chosen,  // The k largest, then a sigmoid each.
  // The k largest; the weight of each is its part of the softmax over the scores that are not
  // better and not further below it than 2 % of the larger of it and the score's magnitude.
  sparse_mixer,
};

namespace op {

// The k experts with the largest score (ties: the lowest index; NaN last), best first.
// chosen[row][rank] holds the expert's index as an int32 in the float's bits.
struct Route {
  Rows logits;   // [tokens, expert_count]
  Rows chosen;   // [tokens, k]
  Rows weights;  // [tokens, k]
  RouterScore score = RouterScore::softmax_all;
  bool normalize = false;   // Divide the k weights by their sum, unless that is 0.
  float scale = 1.0f;       // Multiplies the weights last.
  Constant selection_bias;  // [expert_count]: added for choosing only.
  // Groups of equally many experts, in their order: only those of the `group_used_count` best
  // groups are chosen. A group is worth the sum of its `group_best_count` best scores, best first,
  // as they count for choosing; ties: the first group. REQUIRES: group_used_count groups have k
  // experts, and each group has group_best_count.
  int32_t group_count = 1, group_used_count = 1, group_best_count = 1;
};

// out[row][rank * weight.rows + o] = weight[chosen[row][rank]] * x, as op::MatMul, with the
// expert's scale and bias; `x_per_rank`: x is [tokens, k * weight.cols] and each rank reads its own
// part, else all read the same row.
struct ExpertMatMul {
  const Weight* weight;  // weight.count experts
  Rows x;
  QuantizedRows quantized;
  Rows chosen;  // If it does not exist, rank r uses matrix r, for all matrices.
  Rows out;
  bool x_per_rank = false;
  Constant bias;  // [weight.count][weight.rows]

  int32_t rank_count() const { return chosen.exists() ? chosen.width : weight->count; }
};

// out[row][rank * width + i] = x[row][i] * weights[row][rank]: the expert's input, in models that
// apply the router's weight before the expert.
struct ExpertScale {
  Rows x;        // [tokens, width]
  Rows weights;  // [tokens, k]
  Rows out;      // [tokens, k * width]
};

// out = sum over ranks of weights[row][rank] * x[row][rank], in the order of the ranks, fma.
struct ExpertSum {
  Rows x;        // [tokens, k * width]
  Rows weights;  // [tokens, k]
  Rows out;      // [tokens, width]
};

}  // namespace op
}  // namespace cairn
