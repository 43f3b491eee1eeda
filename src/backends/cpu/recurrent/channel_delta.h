// Kernel template of the delta rule with a decay for each channel, instantiated per
// instruction set by ops_<isa>.cpp. Same bits as backends/reference/channel_delta.cpp. Vectors run
// across a head's values; each token reads some columns of the state once: the loop that updates
// them also computes their product with the next token's key (as delta_rule.h).
#pragma once

#include "backends/cpu/elementwise.h"
#include "backends/cpu/lanes/repeat.h"

namespace cairn {
namespace {

template <class L>
void channel_delta_step_sizes(const cpu::ChannelDeltaStepArgs& args) {
  const L a = L(args.a), rate = elementary::sigmoid(L(args.raw_rate));
  for_lanes<L>(args.key_dim, [&](int32_t n, auto count) {
    const L decay = elementary::exp(load_some<L>(args.log_decay + n, count) * a);
    store_some(args.decay + n, decay, count);
    if (args.k == nullptr) return;
    const L k = load_some<L>(args.k + n, count);
    store_some(args.asked + n, k * decay, count);
    store_some(args.written + n, k * rate, count);
  });
}

// The sums of state * `asked` for N vectors of the head's values from column p on; `count` is that
// of the last vector.
template <class L, int32_t N, StatesGo Go>
[[gnu::always_inline]] inline void channel_delta_known(const cpu::ChannelDeltaArgs& args, int32_t p,
                                                       auto count, L (&known)[N]) {
  const float* source = args.before + p;
  repeat<N>([&](auto i) { known[i] = L(0.0f); });
  for (int32_t n = 0; n < args.key_dim; ++n, source += args.value_dim) {
    if constexpr (Go == StatesGo::past_caches) fetch_ahead<L, N>(source);
    const L asked = L(args.asked[n]);
    repeat<N>([&](auto i) {
      const L state = load_some<L>(source + i * L::kCount, count);
      known[i] = fma(state, asked, known[i]);
    });
  }
}

// Updates N vectors by one row, from `source` to `target`. `known` comes as the row's and, where
// there is a next row, goes as that one's.
template <class L, int32_t N, bool HasNext, StatesGo Go>
[[gnu::always_inline]] inline void channel_delta_row(const cpu::ChannelDeltaArgs& args, int32_t row,
                                                     int32_t p, auto count,
                                                     StateWalk<const float> source,
                                                     StateWalk<float> target, L (&known)[N]) {
  const float* q = args.q + int64_t(row) * args.q_stride;
  const float* written = args.written + int64_t(row) * args.written_stride;
  const float* erased = args.erased + int64_t(row) * args.erased_stride;
  const float* decay = args.decay + int64_t(row) * args.decay_stride;
  const float* next = HasNext ? args.asked + int64_t(row + 1) * args.asked_stride : nullptr;
  const float* v = args.v + int64_t(row) * args.v_stride + p;
  float* out = args.out + int64_t(row) * args.out_stride + p;
  L value[N], minus_known[N], total[N];
  repeat<N>([&](auto i) {
    value[i] = load_some<L>(v + i * L::kCount, count);
    minus_known[i] = known[i] * L(-1.0f);
    total[i] = known[i] = L(0.0f);
  });
  const int32_t key_dim = args.key_dim;
  for (int32_t n = 0; n < key_dim; ++n, source.go_on(), target.go_on()) {
    const L kept = L(decay[n]), added = L(written[n]), removed = L(erased[n]), read = L(q[n]);
    const L asked = HasNext ? L(next[n]) : L(0.0f);
    repeat<N>([&](auto i) {
      L state = load_some<L>(source.here + i * L::kCount, count) * kept;
      state = fma(added, value[i], state);
      state = fma(removed, minus_known[i], state);
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
void channel_delta_columns(const cpu::ChannelDeltaArgs& args, int32_t p, auto count) {
  L known[N];
  channel_delta_known<L, N, Go>(args, p, count, known);
  const StateWalk<float> after{args.after + p, args.value_dim};
  const StateWalk<float> waiting =
      Go == StatesGo::past_caches ? StateWalk<float>{args.room, cpu::kDeltaRoomColumns} : after;
  StateWalk<const float> before{args.before + p, args.value_dim};
  for (int32_t row = 0; row + 1 < args.row_count; ++row) {
    channel_delta_row<L, N, true, StatesGo::home>(args, row, p, count, before, waiting, known);
    before = waiting;
  }
  channel_delta_row<L, N, false, Go>(args, args.row_count - 1, p, count, before, after, known);
}

// A row alone walks over states that come from memory: wide, so that what it reads lies together.
// Of many rows two vectors have four sums each in flight, which is what registers hold everywhere.
// What is narrower than either walk goes home: past the caches it would reach the memory in pieces.
template <class L, StatesGo Go>
[[gnu::always_inline]] inline void channel_delta_head(const cpu::ChannelDeltaArgs& args) {
  constexpr int32_t kVectors = 2, kVectorsAlone = L::kCount >= 16 ? 8 : 4;
  int32_t p = 0;
  const auto walk = [&](auto vectors) {
    constexpr int32_t kColumns = vectors * L::kCount;
    for (; p + kColumns <= args.column_count; p += kColumns) {
      channel_delta_columns<L, vectors, Go>(args, p, Index<L::kCount>{});
    }
  };
  if (args.row_count == 1) walk(Index<kVectorsAlone>{});
  walk(Index<kVectors>{});
  for_lanes<L>(args.column_count - p, [&](int32_t first, auto count) {
    channel_delta_columns<L, 1>(args, p + first, count);
  });
}

template <class L>
void channel_delta_rows(const cpu::ChannelDeltaArgs& args) {
  if (!args.streams) return channel_delta_head<L, StatesGo::home>(args);
  channel_delta_head<L, StatesGo::past_caches>(args);
  drain_past_caches(L{});
}

}  // namespace
}  // namespace cairn
