// The router of a mixture of experts: scores, the k best of them, and their weights.
#include <algorithm>
#include <bit>
#include <limits>

#include "backends/reference/kernels.h"
#include "backends/reference/partial_sums.h"
#include "backends/reference/routing.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"

namespace cairn::reference {
namespace {

// In place: exp(x - max) divided by their sum. A NaN is passed over by the maximum and then makes
// the sum, and so every weight, NaN.
void softmax(std::span<float> x) {
  float max = -std::numeric_limits<float>::infinity();
  for (const float value : x) max = value > max ? value : max;
  for (float& value : x) value = elementary::exp(value - max);
  const float total = sum(x);
  for (float& value : x) value /= total;
}

// The rank'th pass takes the best expert that is worse than the one before: by key, then by index.
// Nothing is marked, so that no memory is needed; k passes over a short row.
void choose(std::span<const float> scores, const float* bias, std::span<float> chosen) {
  int64_t last = std::numeric_limits<int64_t>::max();
  for (float& slot : chosen) {
    int64_t best = std::numeric_limits<int64_t>::min();
    for (size_t expert = 0; expert < scores.size(); ++expert) {
      const float score = bias == nullptr ? scores[expert] : scores[expert] + bias[expert];
      const int64_t key = int64_t(order_key(score)) * (int64_t(1) << 31) - int64_t(expert);
      if (key < last) best = std::max(best, key);
    }
    // key = order * 2^31 - index with index < 2^31: the index is what is missing to the multiple.
    slot = std::bit_cast<float>(int32_t(-best & 0x7fffffff));
    last = best;
  }
}

}  // namespace

int32_t order_key(float score) {
  if (score != score) return std::numeric_limits<int32_t>::min();
  const int32_t bits = std::bit_cast<int32_t>(score + 0.0f);
  return bits >= 0 ? bits : int32_t(0x80000000u - uint32_t(bits));
}

void route_row(const op::Route& op, std::span<const float> logits, std::span<float> scores,
               std::span<float> chosen, std::span<float> weights) {
  std::copy(logits.begin(), logits.end(), scores.begin());
  if (op.score == RouterScore::softmax_all) softmax(scores);
  if (op.score == RouterScore::sigmoid) {
    for (float& score : scores) score = elementary::sigmoid(score);
  }
  choose(scores, op.selection_bias, chosen);
  for (size_t rank = 0; rank < chosen.size(); ++rank) {
    weights[rank] = scores[size_t(std::bit_cast<int32_t>(chosen[rank]))];
  }
  if (op.score == RouterScore::softmax_chosen) softmax(weights);
  if (op.score == RouterScore::sigmoid_chosen) {
    for (float& weight : weights) weight = elementary::sigmoid(weight);
  }
  if (op.normalize) {
    float total = 0;
    for (const float weight : weights) total += weight;
    // All chosen scores can be zero (a sigmoid far below zero); then the weights stay zero.
    if (total != 0) {
      for (float& weight : weights) weight /= total;
    }
  }
  for (float& weight : weights) weight *= op.scale;
  if (op.expert_scale == nullptr) return;
  for (size_t rank = 0; rank < chosen.size(); ++rank) {
    weights[rank] *= op.expert_scale[size_t(std::bit_cast<int32_t>(chosen[rank]))];
  }
}

host::HostKernel route_kernel() {
  return {.task_count = [](const Op& op, const Step& step) -> int64_t {
            return step.row_count(std::get<op::Route>(op).chosen.set);
          },
          .run =
              [](const Op& op, const Step& step, int64_t task, std::byte* scratch) {
                const auto& route = std::get<op::Route>(op);
                const int32_t row = int32_t(task);
                route_row(route, row_of(step, route.logits, row),
                          {reinterpret_cast<float*>(scratch), size_t(route.logits.width)},
                          row_of(step, route.chosen, row), row_of(step, route.weights, row));
              },
          .scratch_bytes = [](const Op& op) -> size_t {
            return size_t(std::get<op::Route>(op).logits.width) * sizeof(float);
          }};
}

}  // namespace cairn::reference
