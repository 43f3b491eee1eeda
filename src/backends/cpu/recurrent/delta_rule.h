// Kernel template of the gated delta rule, instantiated per instruction set by ops_<isa>.cpp.
// Same bits as backends/reference/delta_rule.cpp. Vectors run across a head's values; 32 of them
// with all keys are 16 KiB at 128 keys, half of the smallest L1 cache. Each token reads the state
// once: the loop that updates it also computes its product with the next token's key.
#pragma once

#include "backends/cpu/elementwise.h"
#include "backends/cpu/lanes/repeat.h"

namespace cairn {
namespace {

template <class L>
void delta_step_sizes(const cpu::DeltaStepArgs& args) {
  const L a = L(args.a), bias = L(args.bias);
  for_lanes<L>(args.count, [&](int32_t row, auto count) {
    const float* raw = args.raw + int64_t(row) * args.raw_stride;
    const float* raw_rate = args.raw_rate + int64_t(row) * args.raw_rate_stride;
    const L dt = elementary::softplus(L::load_strided(raw, args.raw_stride, count) + bias);
    store_some(args.decay + row, elementary::exp(dt * a), count);
    const L rate = elementary::sigmoid(L::load_strided(raw_rate, args.raw_rate_stride, count));
    store_some(args.rate + row, rate, count);
  });
}

// The sums of state * key for N vectors of the head's values from column p on; `count` is that of
// the last vector.
template <class L, int32_t N, StatesGo Go>
[[gnu::always_inline]] inline void delta_known(const cpu::DeltaArgs& args, int32_t p, auto count,
                                               L (&known)[N]) {
  const float* source = args.before + p;
  repeat<N>([&](auto i) { known[i] = L(0.0f); });
  for (int32_t n = 0; n < args.key_dim; ++n, source += args.value_dim) {
    if constexpr (Go == StatesGo::past_caches) fetch_ahead<L, N>(source);
    const L k = L(args.k[n]);
    repeat<N>([&](auto i) {
      const L state = load_some<L>(source + i * L::kCount, count);
      known[i] = fma(state, k, known[i]);
    });
  }
}

// Updates N vectors by one row, from `source` to `target`. `known` comes as the row's and, where
// there is a next row, goes as that one's.
template <class L, int32_t N, bool HasNext, StatesGo Go>
[[gnu::always_inline]] inline void delta_row(const cpu::DeltaArgs& args, int32_t row, int32_t p,
                                             auto count, StateWalk<const float> source,
                                             StateWalk<float> target, L (&known)[N]) {
  const float* q = args.q + int64_t(row) * args.q_stride;
  const float* k = args.k + int64_t(row) * args.k_stride;
  const float* v = args.v + int64_t(row) * args.v_stride + p;
  float* out = args.out + int64_t(row) * args.out_stride + p;
  const float* next = HasNext ? k + args.k_stride : nullptr;
  const L decay = L(args.decay[row]), minus_decay = L(-args.decay[row]), rate = L(args.rate[row]);
  L delta[N], total[N];
  repeat<N>([&](auto i) {
    delta[i] = fma(known[i], minus_decay, load_some<L>(v + i * L::kCount, count)) * rate;
    total[i] = known[i] = L(0.0f);
  });
  const int32_t key_dim = args.key_dim;
  for (int32_t n = 0; n < key_dim; ++n, source.go_on(), target.go_on()) {
    const L written = L(k[n]), read = L(q[n]), asked = HasNext ? L(next[n]) : L(0.0f);
    repeat<N>([&](auto i) {
      L state = load_some<L>(source.here + i * L::kCount, count) * decay;
      state = fma(written, delta[i], state);
      total[i] = fma(state, read, total[i]);
      if constexpr (HasNext) known[i] = fma(state, asked, known[i]);
      store_state<Go>(target.here + i * L::kCount, state, count);
    });
  }
  repeat<N>([&](auto i) { store_some(out + i * L::kCount, total[i], count); });
}

// All rows past N vectors. Where the last one stores the states past the caches, they wait in the
// first cache until then.
template <class L, int32_t N, StatesGo Go = StatesGo::home>
void delta_columns(const cpu::DeltaArgs& args, int32_t p, auto count) {
  L known[N];
  delta_known<L, N, Go>(args, p, count, known);
  const StateWalk<float> after{args.after + p, args.value_dim};
  const StateWalk<float> waiting =
      Go == StatesGo::past_caches ? StateWalk<float>{args.room, cpu::kDeltaRoomColumns} : after;
  StateWalk<const float> before{args.before + p, args.value_dim};
  for (int32_t row = 0; row + 1 < args.row_count; ++row) {
    delta_row<L, N, true, StatesGo::home>(args, row, p, count, before, waiting, known);
    before = waiting;
  }
  delta_row<L, N, false, Go>(args, args.row_count - 1, p, count, before, after, known);
}

// A row alone walks over states that come from memory: wide, so that what it reads lies together.
// What is narrower than either walk goes home: past the caches it would reach the memory in pieces.
template <class L, StatesGo Go>
[[gnu::always_inline]] inline void delta_head(const cpu::DeltaArgs& args) {
  constexpr int32_t kVectors = cpu::kDeltaRoomColumns / L::kCount, kVectorsAlone = 8;
  int32_t p = 0;
  const auto walk = [&](auto vectors) {
    constexpr int32_t kColumns = vectors * L::kCount;
    for (; p + kColumns <= args.column_count; p += kColumns) {
      delta_columns<L, vectors, Go>(args, p, Index<L::kCount>{});
    }
  };
  if (args.row_count == 1) walk(Index<kVectorsAlone>{});
  walk(Index<kVectors>{});
  for_lanes<L>(args.column_count - p, [&](int32_t first, auto count) {
    delta_columns<L, 1>(args, p + first, count);
  });
}

template <class L>
void delta_rows(const cpu::DeltaArgs& args) {
  if (!args.streams) return delta_head<L, StatesGo::home>(args);
  delta_head<L, StatesGo::past_caches>(args);
  drain_past_caches(L{});
}

}  // namespace
}  // namespace cairn
