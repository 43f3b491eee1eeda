// Kernel templates of rotations, instantiated per instruction set by ops_<isa>.cpp. Same bits
// as backends/reference/rope.cpp.
#pragma once

#include "backends/cpu/elementwise.h"

namespace cairn {
namespace {

inline void rotate_pair(float* x0, float* x1, const float* turn) {
  const float a = *x0, b = *x1;
  *x0 = __builtin_fmaf(a, turn[0], -(b * turn[1]));
  *x1 = __builtin_fmaf(a, turn[1], b * turn[0]);
}

// The table's pairs are split once and used for all heads.
template <class L>
void rope_halves_row(const cpu::RopeArgs& args) {
  int32_t pair = 0;
  for (; pair + L::kCount <= args.pair_count; pair += L::kCount) {
    const auto turn =
        split_pairs(L::load(args.table + 2 * pair), L::load(args.table + 2 * pair + L::kCount));
    for (int32_t head = 0; head < args.head_count; ++head) {
      float* x0 = args.x + size_t(head) * size_t(args.head_dim) + pair;
      float* x1 = x0 + args.pair_count;
      const L a = L::load(x0), b = L::load(x1);
      store(x0, fms(a, turn.even, b * turn.odd));
      store(x1, fma(a, turn.odd, b * turn.even));
    }
  }
  for (; pair < args.pair_count; ++pair) {
    for (int32_t head = 0; head < args.head_count; ++head) {
      float* x0 = args.x + size_t(head) * size_t(args.head_dim) + pair;
      rotate_pair(x0, x0 + args.pair_count, args.table + 2 * pair);
    }
  }
}

template <class L>
void rope_adjacent_row(const cpu::RopeArgs& args) {
  int32_t pair = 0;
  for (; pair + L::kCount <= args.pair_count; pair += L::kCount) {
    const auto turn =
        split_pairs(L::load(args.table + 2 * pair), L::load(args.table + 2 * pair + L::kCount));
    for (int32_t head = 0; head < args.head_count; ++head) {
      float* x = args.x + size_t(head) * size_t(args.head_dim) + 2 * pair;
      const auto both = split_pairs(L::load(x), L::load(x + L::kCount));
      const auto turned = join_pairs(fms(both.even, turn.even, both.odd * turn.odd),
                                     fma(both.even, turn.odd, both.odd * turn.even));
      store(x, turned.even);
      store(x + L::kCount, turned.odd);
    }
  }
  for (; pair < args.pair_count; ++pair) {
    for (int32_t head = 0; head < args.head_count; ++head) {
      float* x = args.x + size_t(head) * size_t(args.head_dim) + 2 * pair;
      rotate_pair(x, x + 1, args.table + 2 * pair);
    }
  }
}

}  // namespace
}  // namespace cairn
