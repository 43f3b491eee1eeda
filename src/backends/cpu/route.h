// Kernel templates of the router's rows, instantiated per instruction set by ops_<isa>.cpp. Same
// bits as backends/reference/route.cpp. Each function leaves the upper halves of its registers
// clear, because the walk of a row, which calls it, is compiled for older instruction sets.
#pragma once

#include "backends/cpu/elementwise.h"
#include "backends/reference/route_functions.h"

namespace cairn {
namespace {

template <class L>
void exp_minus_scores(const float* x, float shift, float* out, int32_t count) {
  for_lanes<L>(count, [&](int32_t i, auto some) {
    store_some(out + i, elementary::exp(load_some<L>(x + i, some) - L(shift)), some);
  });
  L::clear_upper_halves();
}

template <class L>
void softmax_scores(float* x, int32_t count) {
  float max = -__builtin_inff();
  int32_t i = 0;
  if (count >= L::kCount) {
    L maxima = L(max);
    for (; i + L::kCount <= count; i += L::kCount) maxima = larger(L::load(x + i), maxima);
    max = largest(maxima, max);
  }
  for (; i < count; ++i) max = x[i] > max ? x[i] : max;
  for_lanes<L>(count, [&](int32_t first, auto some) {
    store_some(x + first, elementary::exp(load_some<L>(x + first, some) - L(max)), some);
  });
  auto sums = zero_partials(L{});
  for (int32_t first = 0; first < count; first += 16) {
    add_values(sums, x + first, count - first < 16 ? count - first : 16);
  }
  const L total = L(add_tree(sums));
  for_lanes<L>(count, [&](int32_t first, auto some) {
    store_some(x + first, load_some<L>(x + first, some) / total, some);
  });
  L::clear_upper_halves();
}

template <class L>
void sigmoid_scores(float* x, int32_t count) {
  for_lanes<L>(count, [&](int32_t i, auto some) {
    store_some(x + i, elementary::sigmoid(load_some<L>(x + i, some)), some);
  });
  L::clear_upper_halves();
}

// Below every key of a score: of what has been taken, and of what is not there.
constexpr int32_t kTakenKey = INT32_MIN, kNanKey = INT32_MIN + 1;

// Integers that sort as reference::order_key() does.
template <class L>
[[gnu::always_inline]] inline typename L::Int order_keys(L x) {
  using Int = typename L::Int;
  const Int magnitude = bits_of(x) & Int(0x7fffffff);
  const L rest = select(L(-1.0f) < x, from_bits(magnitude), from_bits(Int(kNanKey)));
  return bits_of(select(x < L(0.0f), from_bits(Int(0) - magnitude), rest));
}

// The keys of at most one vector of scores; what is not there has kTakenKey.
template <class L>
[[gnu::always_inline]] inline typename L::Int some_order_keys(const float* scores, int32_t count) {
  if (count >= L::kCount) return order_keys(L::load(scores));
  return with_rest(order_keys(L::load_first(scores, count)), count, kTakenKey);
}

// Of a row that is one vector.
template <class L>
[[gnu::always_inline]] inline void take_best_of_lanes(const reference::TakeBest& args) {
  typename L::Int keys = some_order_keys<L>(args.scores, args.count);
  for (int32_t rank = 0; rank < args.best_count; ++rank) {
    args.best[rank] = first_equal(keys, largest(keys));
    keys = with_lane(keys, args.best[rank], kTakenKey);
  }
}

// Keys lie in blocks of one vector, beside the largest key of each block. Whoever takes the largest
// of these reads, and then changes, one block only.
template <class L>
[[gnu::always_inline]] inline void take_best_of_blocks(const reference::TakeBest& args) {
  using Int = typename L::Int;
  constexpr int32_t kBlock = L::kCount;
  const int32_t block_count = (args.count + kBlock - 1) / kBlock;
  int32_t* const keys = args.room;
  int32_t* const maxima = keys + block_count * kBlock;
  for (int32_t first = 0; first < block_count; first += kBlock) {
    Int of_blocks = Int(kTakenKey);
    for (int32_t i = 0; i < kBlock && first + i < block_count; ++i) {
      const int32_t begin = (first + i) * kBlock;
      const Int own = some_order_keys<L>(args.scores + begin, args.count - begin);
      store(keys + begin, own);
      of_blocks = with_lane(of_blocks, i, largest(own));
    }
    store(maxima + first, of_blocks);
  }
  for (int32_t rank = 0; rank < args.best_count; ++rank) {
    Int best = Int::load(maxima);
    for (int32_t i = kBlock; i < block_count; i += kBlock) {
      best = larger(best, Int::load(maxima + i));
    }
    const int32_t key = largest(best);
    int32_t first = 0;
    int32_t block = first_equal(Int::load(maxima), key);
    while (block == kBlock) {
      first += kBlock;
      block = first_equal(Int::load(maxima + first), key);
    }
    int32_t* const own = keys + (first + block) * kBlock;
    const Int before = Int::load(own);
    const int32_t lane = first_equal(before, key);
    const Int after = with_lane(before, lane, kTakenKey);
    store(own, after);
    store(maxima + first, with_lane(Int::load(maxima + first), block, largest(after)));
    args.best[rank] = (first + block) * kBlock + lane;
  }
}

template <class L>
void take_best_scores(const reference::TakeBest& args) {
  if (args.count <= L::kCount) {
    take_best_of_lanes<L>(args);
  } else {
    take_best_of_blocks<L>(args);
  }
  L::clear_upper_halves();
}

}  // namespace
}  // namespace cairn
