// The router of a mixture of experts: scores, the k best of them, and their weights.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/reference/kernels.h"
#include "backends/reference/partial_sums.h"
#include "backends/reference/routing.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"

namespace cairn::reference {
namespace {

void exp_minus(const float* x, float shift, float* out, int32_t count) {
  for (int32_t i = 0; i < count; ++i) out[i] = elementary::exp(x[i] - shift);
}

void softmax(float* x, int32_t count) {
  float max = -std::numeric_limits<float>::infinity();
  for (int32_t i = 0; i < count; ++i) max = x[i] > max ? x[i] : max;
  exp_minus(x, max, x, count);
  const float total = sum({x, size_t(count)});
  for (int32_t i = 0; i < count; ++i) x[i] /= total;
}

void sigmoid(float* x, int32_t count) {
  for (int32_t i = 0; i < count; ++i) x[i] = elementary::sigmoid(x[i]);
}

// One number for each score of a row, all different: by score, and among equals by index, the
// first being the largest. The index is what is missing to the next multiple of 2^31.
int64_t key_of(float score, int32_t index) {
  return int64_t(order_key(score)) * (int64_t(1) << 31) - index;
}

int32_t index_in(int64_t key) {
  return int32_t(-key & 0x7fffffff);
}

// As many passes over a short row as there are to be found; each looks for the largest key below
// the last one.
void take_best(const TakeBest& args) {
  int64_t last = std::numeric_limits<int64_t>::max();
  for (int32_t rank = 0; rank < args.best_count; ++rank) {
    int64_t best = std::numeric_limits<int64_t>::min();
    for (int32_t index = 0; index < args.count; ++index) {
      const int64_t key = key_of(args.scores[index], index);
      if (key < last) best = std::max(best, key);
    }
    args.best[rank] = index_in(best);
    last = best;
  }
}

// What a row needs besides its inputs and outputs.
struct RouteRoom {
  int32_t* for_best;  // First, because it is read in whole vectors.
  float* scores;      // [expert_count]
  float* counting;    // [expert_count]: as they count for choosing.
  float* worths;      // [group_count]
  int32_t* groups;    // [group_used_count], ascending.
  int32_t* best;      // The last that were taken.
  size_t bytes;

  // Without `scratch` only `bytes` is of use.
  RouteRoom(const op::Route& op, std::byte* scratch) {
    size_t used = 0;
    const auto take = [&used, scratch](int32_t count) {
      const size_t offset = std::exchange(used, used + size_t(count) * sizeof(float));
      return scratch == nullptr ? nullptr : scratch + offset;
    };
    for_best = reinterpret_cast<int32_t*>(take(take_best_room(op.logits.width)));
    scores = reinterpret_cast<float*>(take(op.logits.width));
    counting = reinterpret_cast<float*>(take(op.logits.width));
    worths = reinterpret_cast<float*>(take(op.group_count));
    groups = reinterpret_cast<int32_t*>(take(op.group_used_count));
    best = reinterpret_cast<int32_t*>(
        take(std::max({op.chosen.width, op.group_used_count, op.group_best_count})));
    bytes = used;
  }
};

std::span<const int32_t> best_of(std::span<const float> scores, int32_t best_count,
                                 const RouteFunctions& functions, const RouteRoom& room) {
  functions.take_best({.scores = scores.data(),
                       .best = room.best,
                       .count = int32_t(scores.size()),
                       .best_count = best_count,
                       .room = room.for_best});
  return {room.best, size_t(best_count)};
}

// Fills `room.groups`.
void choose_groups(const op::Route& op, const RouteFunctions& functions,
                   std::span<const float> scores, const RouteRoom& room) {
  const size_t size = scores.size() / size_t(op.group_count);
  for (size_t group = 0; group < size_t(op.group_count); ++group) {
    const std::span<const float> own = scores.subspan(group * size, size);
    float worth = 0;
    for (const int32_t index : best_of(own, op.group_best_count, functions, room)) {
      worth += own[size_t(index)];
    }
    room.worths[group] = worth;
  }
  const auto used =
      best_of({room.worths, size_t(op.group_count)}, op.group_used_count, functions, room);
  std::copy(used.begin(), used.end(), room.groups);
  std::sort(room.groups, room.groups + used.size());
}

// The scores of an op with a bias or groups are copied before they are compared: with the bias
// added, and only those of the groups that are used.
void choose(const op::Route& op, const RouteFunctions& functions, const RouteRoom& room,
            std::span<float> chosen) {
  std::span<const float> counting(room.scores, size_t(op.logits.width));
  if (op.selection_bias.exists()) {
    const float* bias = op.selection_bias.from(0);
    for (size_t i = 0; i < counting.size(); ++i) room.counting[i] = room.scores[i] + bias[i];
    counting = {room.counting, counting.size()};
  }
  const size_t group_size = counting.size() / size_t(op.group_count);
  const bool in_groups = op.group_used_count < op.group_count;
  if (in_groups) {
    choose_groups(op, functions, counting, room);
    const size_t used_count = size_t(op.group_used_count);
    for (size_t i = 0; i < used_count; ++i) {
      // Not onto itself or to the right, because the groups ascend.
      const float* from = counting.data() + size_t(room.groups[i]) * group_size;
      std::memmove(room.counting + i * group_size, from, group_size * sizeof(float));
    }
    counting = {room.counting, used_count * group_size};
  }
  size_t rank = 0;
  for (int32_t best : best_of(counting, int32_t(chosen.size()), functions, room)) {
    if (in_groups) {
      const int32_t size = int32_t(group_size);
      best = room.groups[best / size] * size + best % size;
    }
    chosen[rank++] = std::bit_cast<float>(best);
  }
}

// How far from a score others may be that count beside it: twice the noise of training.
constexpr float kMixerReach = 0.02f;

float mixer_weight(const RouteFunctions& functions, const RouteRoom& room,
                   std::span<const float> scores, std::span<const float> chosen, size_t rank) {
  const auto expert_at = [&](size_t r) { return size_t(std::bit_cast<int32_t>(chosen[r])); };
  const float own = scores[expert_at(rank)];
  const float* powers = room.counting;
  functions.exp_minus(scores.data(), own, room.counting, int32_t(scores.size()));
  float total = 0;
  for (size_t expert = 0; expert < scores.size(); ++expert) {
    bool is_better = false;
    for (size_t r = 0; r < rank; ++r) is_better = is_better || expert_at(r) == expert;
    const float magnitude = std::max(std::abs(scores[expert]), own);
    if (is_better || (own - scores[expert]) / magnitude > kMixerReach) continue;
    total += powers[expert];
  }
  return 1.0f / total;
}

}  // namespace

constinit const RouteFunctions scalar_route{
    .softmax = softmax, .sigmoid = sigmoid, .exp_minus = exp_minus, .take_best = take_best};

int32_t order_key(float score) {
  if (score != score) return std::numeric_limits<int32_t>::min();
  const int32_t bits = std::bit_cast<int32_t>(score + 0.0f);
  return bits >= 0 ? bits : int32_t(0x80000000u - uint32_t(bits));
}

void route_row(const op::Route& op, const RouteFunctions& functions, std::span<const float> logits,
               std::byte* scratch, std::span<float> chosen, std::span<float> weights) {
  const RouteRoom room(op, scratch);
  const std::span<float> scores(room.scores, logits.size());
  const int32_t score_count = int32_t(scores.size()), weight_count = int32_t(weights.size());
  std::copy(logits.begin(), logits.end(), scores.begin());
  if (op.score == RouterScore::softmax_all) functions.softmax(scores.data(), score_count);
  if (op.score == RouterScore::sigmoid) functions.sigmoid(scores.data(), score_count);
  choose(op, functions, room, chosen);
  for (size_t rank = 0; rank < chosen.size(); ++rank) {
    weights[rank] = scores[size_t(std::bit_cast<int32_t>(chosen[rank]))];
  }
  if (op.score == RouterScore::softmax_chosen) functions.softmax(weights.data(), weight_count);
  if (op.score == RouterScore::sigmoid_chosen) functions.sigmoid(weights.data(), weight_count);
  if (op.score == RouterScore::sparse_mixer) {
    for (size_t rank = 0; rank < chosen.size(); ++rank) {
      weights[rank] = mixer_weight(functions, room, scores, chosen, rank);
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

size_t route_scratch_bytes(const op::Route& op) {
  return RouteRoom(op, nullptr).bytes;
}

host::HostKernel route_kernel() {
  return {.task_count = [](const Op& op, const Step& step) -> int64_t {
            return step.row_count(std::get<op::Route>(op).chosen.set);
          },
          .run =
              [](const Op& op, const Step& step, int64_t task, std::byte* scratch) {
                const auto& route = std::get<op::Route>(op);
                const int32_t row = int32_t(task);
                route_row(route, scalar_route, row_of(step, route.logits, row), scratch,
                          row_of(step, route.chosen, row), row_of(step, route.weights, row));
              },
          .scratch_bytes = [](const Op& op) -> size_t {
            return route_scratch_bytes(std::get<op::Route>(op));
          }};
}

}  // namespace cairn::reference
