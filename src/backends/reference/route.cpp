// The router of a mixture of experts: scores, the k best of them, and their weights.
#include <algorithm>
#include <bit>
#include <cmath>
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

// One number for each score of a row, all different: by score, and among equals by index, the
// first being the largest. The index is what is missing to the next multiple of 2^31.
int64_t key_of(float score, size_t index) {
  return int64_t(order_key(score)) * (int64_t(1) << 31) - int64_t(index);
}

int32_t index_in(int64_t key) {
  return int32_t(-key & 0x7fffffff);
}

// The largest key below `last` of `count` scores. Whoever wants the k best makes k passes over a
// short row; nothing is marked, so that no memory is needed.
template <class ScoreOf>
int64_t next_best(size_t count, int64_t last, const ScoreOf& score_of) {
  int64_t best = std::numeric_limits<int64_t>::min();
  for (size_t index = 0; index < count; ++index) {
    const int64_t key = key_of(score_of(index), index);
    if (key < last) best = std::max(best, key);
  }
  return best;
}

constexpr int64_t kAboveAll = std::numeric_limits<int64_t>::max();

// Writes each group's worth to `worths`; returns the key of the last group that is used.
template <class ScoreOf>
int64_t weigh_groups(const op::Route& op, size_t expert_count, const ScoreOf& score_of,
                     std::span<float> worths) {
  const size_t size = expert_count / worths.size();
  for (size_t group = 0; group < worths.size(); ++group) {
    const auto score_in_group = [&](size_t index) { return score_of(group * size + index); };
    worths[group] = 0;
    int64_t last = kAboveAll;
    for (int32_t rank = 0; rank < op.group_best_count; ++rank) {
      last = next_best(size, last, score_in_group);
      worths[group] += score_in_group(size_t(index_in(last)));
    }
  }
  int64_t last = kAboveAll;
  for (int32_t rank = 0; rank < op.group_used_count; ++rank) {
    last = next_best(worths.size(), last, [&](size_t group) { return worths[group]; });
  }
  return last;
}

// `worths`: room for one float a group, where there are several.
void choose(const op::Route& op, std::span<const float> scores, std::span<float> worths,
            std::span<float> chosen) {
  const auto score_of = [&](size_t expert) {
    return op.selection_bias.exists() ? scores[expert] + op.selection_bias[int64_t(expert)]
                                      : scores[expert];
  };
  const bool all_groups = op.group_used_count >= op.group_count;
  const size_t group_size = scores.size() / size_t(op.group_count);
  const int64_t last_group = all_groups ? 0 : weigh_groups(op, scores.size(), score_of, worths);
  int64_t last = kAboveAll;
  for (float& slot : chosen) {
    int64_t best = std::numeric_limits<int64_t>::min();
    for (size_t expert = 0; expert < scores.size(); ++expert) {
      const size_t group = expert / group_size;
      if (!all_groups && key_of(worths[group], group) < last_group) continue;
      const int64_t key = key_of(score_of(expert), expert);
      if (key < last) best = std::max(best, key);
    }
    slot = std::bit_cast<float>(index_in(best));
    last = best;
  }
}

// How far from a score others may be that count beside it: twice the noise of training.
constexpr float kMixerReach = 0.02f;

float mixer_weight(std::span<const float> scores, std::span<const float> chosen, size_t rank) {
  const auto expert_at = [&](size_t r) { return size_t(std::bit_cast<int32_t>(chosen[r])); };
  const float own = scores[expert_at(rank)];
  float total = 0;
  for (size_t expert = 0; expert < scores.size(); ++expert) {
    bool is_better = false;
    for (size_t r = 0; r < rank; ++r) is_better = is_better || expert_at(r) == expert;
    const float magnitude = std::max(std::abs(scores[expert]), own);
    if (is_better || (own - scores[expert]) / magnitude > kMixerReach) continue;
    total += elementary::exp(scores[expert] - own);
  }
  return 1.0f / total;
}

}  // namespace

int32_t order_key(float score) {
  if (score != score) return std::numeric_limits<int32_t>::min();
  const int32_t bits = std::bit_cast<int32_t>(score + 0.0f);
  return bits >= 0 ? bits : int32_t(0x80000000u - uint32_t(bits));
}

void route_row(const op::Route& op, std::span<const float> logits, std::span<float> scratch,
               std::span<float> chosen, std::span<float> weights) {
  const std::span<float> scores = scratch.first(logits.size());
  std::copy(logits.begin(), logits.end(), scores.begin());
  if (op.score == RouterScore::softmax_all) softmax(scores);
  if (op.score == RouterScore::sigmoid) {
    for (float& score : scores) score = elementary::sigmoid(score);
  }
  choose(op, scores, scratch.subspan(logits.size()), chosen);
  for (size_t rank = 0; rank < chosen.size(); ++rank) {
    weights[rank] = scores[size_t(std::bit_cast<int32_t>(chosen[rank]))];
  }
  if (op.score == RouterScore::softmax_chosen) softmax(weights);
  if (op.score == RouterScore::sigmoid_chosen) {
    for (float& weight : weights) weight = elementary::sigmoid(weight);
  }
  if (op.score == RouterScore::sparse_mixer) {
    for (size_t rank = 0; rank < chosen.size(); ++rank) {
      weights[rank] = mixer_weight(scores, chosen, rank);
    }
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
}

size_t scratch_floats(const op::Route& op) {
  return size_t(op.logits.width) + size_t(op.group_count > 1 ? op.group_count : 0);
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
                          {reinterpret_cast<float*>(scratch), scratch_floats(route)},
                          row_of(step, route.chosen, row), row_of(step, route.weights, row));
              },
          .scratch_bytes = [](const Op& op) -> size_t {
            return scratch_floats(std::get<op::Route>(op)) * sizeof(float);
          }};
}

}  // namespace cairn::reference
