// Kernel templates of recurrences (short convolution, the scans of Mamba-1 and Mamba-2),
// instantiated per instruction set by ops_<isa>.cpp. Same bits as conv.cpp, mamba.cpp and
// mamba2.cpp of backends/reference. Vectors run across channels; a channel's state stays in
// registers (convolution) or in the L1 cache (scan) from token to token.
#pragma once

#include "backends/cpu/elementwise.h"
#include "backends/cpu/lanes/repeat.h"
#include "backends/cpu/lanes/transpose_vectors.h"

namespace cairn {
namespace {

// Where a row of the slice has its inputs; negative rows: the tail. Null means zeros.
[[gnu::always_inline]] inline const float* conv_source(const cpu::ConvArgs& args, int32_t row) {
  if (row >= 0) return args.x + int64_t(row) * args.x_stride;
  if (args.tail == nullptr) return nullptr;
  return args.tail + int64_t(args.kernel - 1 + row) * args.tail_stride;
}

template <class L>
[[gnu::always_inline]] inline L conv_input(const float* source, int32_t channel, int32_t count) {
  return source == nullptr ? L(0.0f) : load_some<L>(source + channel, count);
}

template <class L>
[[gnu::always_inline]] inline L conv_bias(const cpu::ConvArgs& args, int32_t channel,
                                          int32_t count) {
  return args.bias == nullptr ? L(0.0f) : load_some<L>(args.bias + channel, count);
}

template <class L>
[[gnu::always_inline]] inline void conv_output(const cpu::ConvArgs& args, int32_t row,
                                               int32_t channel, int32_t count, L total) {
  if (args.silu) total = elementary::silu(total);
  store_some(args.out + int64_t(row) * args.out_stride + channel, total, count);
}

// The weights of `count` channels, a vector for each tap.
template <class L, int32_t Taps>
[[gnu::always_inline]] inline void load_taps(const float* weight, int32_t count, L (&taps)[Taps]) {
  if constexpr (Taps == 2 || Taps == 4) {
    if (count == L::kCount) {
      repeat<Taps>([&](auto tap) { taps[tap] = L::load(weight + tap * L::kCount); });
      return transpose_vectors(taps);
    }
  }
  repeat<Taps>([&](auto tap) { taps[tap] = L::load_strided(weight + tap, Taps, count); });
}

// R rows of all channels, row after row in memory: neighbouring channels of a row lie together,
// rows do not. The taps come from `turned` where rows share them, else from the weights.
template <class L, int32_t Taps, int32_t R>
[[gnu::always_inline]] inline void conv_rows(const cpu::ConvArgs& args, int32_t row,
                                             const float* turned) {
  const float* source[Taps - 1 + R];
  repeat<Taps - 1 + R>([&](auto i) { source[i] = conv_source(args, row - (Taps - 1) + i); });
  for_lanes<L>(args.channels, [&](int32_t channel, auto count) {
    L weight[Taps], input[Taps - 1 + R];
    if (turned == nullptr) {
      // Few rows: everything comes from memory.
      fetch_ahead<L, Taps>(args.weight + int64_t(channel) * Taps);
      load_taps<L, Taps>(args.weight + int64_t(channel) * Taps, count, weight);
    } else {
      repeat<Taps>([&](auto tap) {
        weight[tap] = load_some<L>(turned + int64_t(tap) * args.channels + channel, count);
      });
    }
    repeat<Taps - 1 + R>([&](auto i) { input[i] = conv_input<L>(source[i], channel, count); });
    const L bias = conv_bias<L>(args, channel, count);
    repeat<R>([&](auto r) {
      L total = bias;
      repeat<Taps>([&](auto tap) { total = fma(weight[tap], input[r + tap], total); });
      conv_output(args, row + r, channel, count, total);
    });
  });
}

// Taps known to the compiler: each input is loaded once for four rows.
template <class L, int32_t Taps>
void short_conv_taps(const cpu::ConvArgs& args) {
  const int32_t end = args.first_row + args.row_count;
  const float* turned = nullptr;
  if (args.row_count > 4) {
    turned = args.turned;
    for_lanes<L>(args.channels, [&](int32_t channel, auto count) {
      L weight[Taps];
      load_taps<L, Taps>(args.weight + int64_t(channel) * Taps, count, weight);
      for (int32_t tap = 0; tap < Taps; ++tap) {
        store_some(args.turned + int64_t(tap) * args.channels + channel, weight[tap], count);
      }
    });
  }
  int32_t row = args.first_row;
  for (; row + 4 <= end; row += 4) conv_rows<L, Taps, 4>(args, row, turned);
  for (; row < end; ++row) conv_rows<L, Taps, 1>(args, row, turned);
}

template <class L>
void short_conv_any(const cpu::ConvArgs& args) {
  for_lanes<L>(args.channels, [&](int32_t channel, auto count) {
    const L bias = conv_bias<L>(args, channel, count);
    const float* weights = args.weight + int64_t(channel) * args.kernel;
    for (int32_t row = args.first_row; row < args.first_row + args.row_count; ++row) {
      L total = bias;
      for (int32_t tap = 0; tap < args.kernel; ++tap) {
        const float* source = conv_source(args, row - (args.kernel - 1) + tap);
        const L x = conv_input<L>(source, channel, count);
        total = fma(L::load_strided(weights + tap, args.kernel, count), x, total);
      }
      conv_output(args, row, channel, count, total);
    }
  });
}

template <class L>
void short_conv_rows(const cpu::ConvArgs& args) {
  switch (args.kernel) {
    case 2:
      return short_conv_taps<L, 2>(args);
    case 3:
      return short_conv_taps<L, 3>(args);
    case 4:
      return short_conv_taps<L, 4>(args);
    default:
      return short_conv_any<L>(args);
  }
}

// Turns [channels][state_size] into [state_size][channels].
template <class L>
void turn_decays(const cpu::ChannelScanArgs& args) {
  const int32_t size = args.state_size;
  for_lanes<L>(args.channels, [&](int32_t channel, auto count) {
    const float* from = args.a + int64_t(channel) * size;
    float* to = args.decays + channel;
    int32_t n = 0;
    for (; count == L::kCount && n + L::kCount <= size; n += L::kCount) {
      L block[L::kCount];
      repeat<L::kCount>([&](auto i) { block[i] = L::load(from + int64_t(i) * size + n); });
      transpose_vectors(block);
      repeat<L::kCount>([&](auto i) { store(to + int64_t(n + i) * args.channels, block[i]); });
    }
    for (; n < size; ++n) {
      store_some(to + int64_t(n) * args.channels, L::load_strided(from + n, size, count), count);
    }
  });
}

// One row of one vector of channels, from `before` to `after`. The exponentials of different states
// do not wait for each other, so the processor runs them side by side.
template <class L, StatesGo Go>
[[gnu::always_inline]] inline void channel_scan_vector(const cpu::ChannelScanArgs& args,
                                                       int32_t row, int32_t channel, int32_t count,
                                                       StateWalk<const float> before,
                                                       StateWalk<float> after) {
  const L x = load_some<L>(args.x + int64_t(row) * args.x_stride + channel, count);
  const L raw = load_some<L>(args.dt + int64_t(row) * args.dt_stride + channel, count);
  const L dt = elementary::softplus(raw);
  const L fed = x * dt;
  const float* b = args.b + int64_t(row) * args.b_stride;
  const float* c = args.c + int64_t(row) * args.c_stride;
  const float* a = args.decays + channel;
  L total = L(0.0f);
  for (int32_t n = 0; n < args.state_size; ++n, before.go_on(), after.go_on()) {
    const L decay = elementary::exp(dt * load_some<L>(a, count));
    const L state = fma(fed, L(b[n]), load_some<L>(before.here + channel, count) * decay);
    total = fma(state, L(c[n]), total);
    store_state<Go>(after.here + channel, state, count);
    a += args.channels;
  }
  const L d = load_some<L>(args.d + channel, count);
  store_some(args.out + int64_t(row) * args.out_stride + channel, fma(d, x, total), count);
}

template <class L, StatesGo Go>
[[gnu::always_inline]] inline void channel_scan_row(const cpu::ChannelScanArgs& args, int32_t row,
                                                    StateWalk<const float> before,
                                                    StateWalk<float> after) {
  for_lanes<L>(args.channels, [&](int32_t channel, auto count) {
    channel_scan_vector<L, Go>(args, row, channel, count, before, after);
  });
}

// Prefetches all states. Their lines lie far apart, which no prefetcher follows.
inline void fetch_states(const cpu::ChannelScanArgs& args) {
  constexpr int32_t kLineFloats = int32_t(cpu::kLineBytes / sizeof(float));
  for (int32_t n = 0; n < args.state_size; ++n) {
    for (int32_t channel = 0; channel < args.channels; channel += kLineFloats) {
      __builtin_prefetch(args.before + int64_t(n) * args.state_stride + channel);
    }
  }
}

// The first row reads the states where they are kept, the last one stores them there. Between rows
// they stay in the first cache, in room of their own: where they are kept those of one channel lie
// a power of two apart, or nearly, and would push each other out.
template <class L, StatesGo Go>
[[gnu::always_inline]] inline void channel_scan(const cpu::ChannelScanArgs& args) {
  const StateWalk<float> after{args.after, args.state_stride};
  const StateWalk<float> waiting{args.states, args.channels};
  StateWalk<const float> before{args.before, args.state_stride};
  if (args.before != nullptr) {
    fetch_states(args);
  } else {
    before = waiting;
    const int32_t float_count = args.state_size * args.channels;
    for_lanes<L>(float_count, [&](int32_t first, auto count) {
      store_some(args.states + first, L(0.0f), count);
    });
  }
  turn_decays<L>(args);
  for (int32_t row = 0; row + 1 < args.row_count; ++row) {
    channel_scan_row<L, StatesGo::home>(args, row, before, waiting);
    before = waiting;
  }
  channel_scan_row<L, Go>(args, args.row_count - 1, before, after);
}

// Past the caches, less than a line at a time would reach the memory in pieces.
template <class L>
void channel_scan_rows(const cpu::ChannelScanArgs& args) {
  constexpr bool kIsLine = size_t(L::kCount) * sizeof(float) == cpu::kLineBytes;
  if (!kIsLine || !args.streams || args.channels % L::kCount != 0) {
    return channel_scan<L, StatesGo::home>(args);
  }
  channel_scan<L, StatesGo::past_caches>(args);
  drain_past_caches(L{});
}

template <class L>
void scan_step_sizes(const cpu::ScanStepArgs& args) {
  const L a = L(args.a), bias = L(args.bias);
  for_lanes<L>(args.count, [&](int32_t row, auto count) {
    const float* raw = args.raw + int64_t(row) * args.raw_stride;
    const L dt = elementary::softplus(L::load_strided(raw, args.raw_stride, count) + bias);
    store_some(args.dt + row, dt, count);
    store_some(args.decay + row, elementary::exp(dt * a), count);
  });
}

// Moves N vectors of the head's width on by R rows, whose sums stay in registers; each state is
// read and stored once. `count` is that of the last vector. States that go past the caches come
// from memory too, and are prefetched.
template <class L, int32_t R, int32_t N, StatesGo Go>
[[gnu::always_inline]] inline void scan_few(const cpu::ScanArgs& args, int32_t p, auto count) {
  const int32_t state_size = args.state_size, width = args.head_dim;
  L kept[R], fed[R][N], total[R][N];
  repeat<R>([&](auto row) {
    const float* x = args.x + int64_t(row) * args.x_stride + p;
    kept[row] = L(args.decay[row]);
    repeat<N>([&](auto i) {
      fed[row][i] = load_some<L>(x + i * L::kCount, count) * L(args.dt[row]);
      total[row][i] = L(0.0f);
    });
  });
  const float* source = args.before + p;
  float* target = args.after + p;
  for (int32_t n = 0; n < state_size; ++n, source += width, target += width) {
    if constexpr (Go == StatesGo::past_caches) fetch_ahead<L, N>(source);
    L state[N];
    repeat<N>([&](auto i) { state[i] = load_some<L>(source + i * L::kCount, count); });
    repeat<R>([&](auto row) {
      const L written = L(args.b[int64_t(row) * args.b_stride + n]);
      const L read = L(args.c[int64_t(row) * args.c_stride + n]);
      repeat<N>([&](auto i) {
        state[i] = fma(fed[row][i], written, state[i] * kept[row]);
        total[row][i] = fma(state[i], read, total[row][i]);
      });
    });
    repeat<N>([&](auto i) { store_state<Go>(target + i * L::kCount, state[i], count); });
  }
  const L d = L(args.d);
  repeat<R>([&](auto row) {
    const float* x = args.x + int64_t(row) * args.x_stride + p;
    float* out = args.out + int64_t(row) * args.out_stride + p;
    repeat<N>([&](auto i) {
      const L input = load_some<L>(x + i * L::kCount, count);
      store_some(out + i * L::kCount, fma(d, input, total[row][i]), count);
    });
  });
}

// What a row feeds to the states of N vectors of the head's width, and the sums of its outputs, as
// they lie in `room`.
template <class L, int32_t N>
struct ScanSums {
  static constexpr int32_t kFloats = 2 * N * L::kCount;  // Of a row.
  static_assert(kFloats <= cpu::kScanSumFloats);
};

// Walks S states of N vectors, from state n and column p on, through all rows: they stay in
// registers, and the rows' sums, which the first of them begin, wait in the first cache for the
// next states.
template <class L, int32_t S, int32_t N, bool IsFirst, StatesGo Go>
[[gnu::always_inline]] inline void scan_states(const cpu::ScanArgs& args, int32_t n, int32_t p,
                                               auto count) {
  const int32_t row_count = args.row_count, b_stride = args.b_stride, c_stride = args.c_stride;
  const int64_t width = args.head_dim, first = n * width + p;
  L state[S][N];
  repeat<S>([&](auto s) {
    const float* source = args.before + first + s * width;
    if constexpr (Go == StatesGo::past_caches) fetch_ahead<L, N>(source);
    repeat<N>([&](auto i) { state[s][i] = load_some<L>(source + i * L::kCount, count); });
  });
  const float *b = args.b + n, *c = args.c + n, *decay = args.decay;
  float* sums = args.room;
  for (int32_t row = 0; row < row_count; ++row) {
    const L kept = L(decay[row]);
    L fed[N], total[N];
    repeat<N>([&](auto i) {
      fed[i] = L::load(sums + i * L::kCount);
      total[i] = IsFirst ? L(0.0f) : L::load(sums + (N + i) * L::kCount);
    });
    repeat<S>([&](auto s) {
      const L written = L(b[s]), read = L(c[s]);
      repeat<N>([&](auto i) {
        state[s][i] = fma(fed[i], written, state[s][i] * kept);
        total[i] = fma(state[s][i], read, total[i]);
      });
    });
    repeat<N>([&](auto i) { store(sums + (N + i) * L::kCount, total[i]); });
    sums += ScanSums<L, N>::kFloats;
    b += b_stride;
    c += c_stride;
  }
  repeat<S>([&](auto s) {
    float* target = args.after + first + s * width;
    repeat<N>([&](auto i) { store_state<Go>(target + i * L::kCount, state[s][i], count); });
  });
}

// All rows of N vectors of the head's width, some states after the other.
template <class L, int32_t S, int32_t N, StatesGo Go>
[[gnu::always_inline]] inline void scan_columns(const cpu::ScanArgs& args, int32_t p, auto count) {
  constexpr int32_t kFloats = ScanSums<L, N>::kFloats;
  for (int32_t row = 0; row < args.row_count; ++row) {
    const float* x = args.x + int64_t(row) * args.x_stride + p;
    float* sums = args.room + row * kFloats;
    repeat<N>([&](auto i) {
      store(sums + i * L::kCount, load_some<L>(x + i * L::kCount, count) * L(args.dt[row]));
    });
  }
  int32_t n = 0;
  if (args.state_size < S) {
    scan_states<L, 1, N, true, Go>(args, n++, p, count);
  } else {
    scan_states<L, S, N, true, Go>(args, 0, p, count);
    n = S;
  }
  for (; n + S <= args.state_size; n += S) scan_states<L, S, N, false, Go>(args, n, p, count);
  for (; n < args.state_size; ++n) scan_states<L, 1, N, false, Go>(args, n, p, count);
  const L d = L(args.d);
  for (int32_t row = 0; row < args.row_count; ++row) {
    const float* x = args.x + int64_t(row) * args.x_stride + p;
    float* out = args.out + int64_t(row) * args.out_stride + p;
    const float* totals = args.room + row * kFloats + N * L::kCount;
    repeat<N>([&](auto i) {
      const L total = L::load(totals + i * L::kCount);
      store_some(out + i * L::kCount, fma(d, load_some<L>(x + i * L::kCount, count), total), count);
    });
  }
}

// Calls body(p, vectors, count) for N vectors at a time while the head's width has so many, and
// then for one at a time; `count` is that of the last vector.
template <class L, int32_t N, class Body>
[[gnu::always_inline]] inline void for_head_columns(int32_t width, const Body& body) {
  int32_t p = 0;
  for (; p + N * L::kCount <= width; p += N * L::kCount) body(p, Index<N>{}, Index<L::kCount>{});
  for_lanes<L>(width - p, [&](int32_t first, auto count) { body(p + first, Index<1>{}, count); });
}

// R rows, N vectors of a state at a time. What is narrower goes home: past the caches it would
// reach the memory in pieces.
template <class L, int32_t R, int32_t N, StatesGo Go>
[[gnu::always_inline]] inline void scan_head_few(const cpu::ScanArgs& args) {
  for_head_columns<L, N>(args.head_dim, [&](int32_t p, auto vectors, auto count) {
    scan_few<L, R, vectors, vectors == N ? Go : StatesGo::home>(args, p, count);
  });
}

// Of many rows, as many states stay in registers as there is room beside the sums. Five to eight
// rows of wide vectors have sums that the registers do not hold all, and are still faster as few.
template <class L, StatesGo Go>
[[gnu::always_inline]] inline void scan_head(const cpu::ScanArgs& args) {
  constexpr int32_t kVectors = L::kRegisters >= 32 ? 4 : 2;
  if (args.row_count == 1) return scan_head_few<L, 1, 4, Go>(args);
  if (args.row_count == 2) return scan_head_few<L, 2, 4, Go>(args);
  if (args.row_count == 3) return scan_head_few<L, 3, kVectors, Go>(args);
  if (args.row_count == 4) return scan_head_few<L, 4, kVectors, Go>(args);
  if constexpr (L::kCount == 16) {
    if (args.row_count == 5) return scan_head_few<L, 5, kVectors, Go>(args);
    if (args.row_count == 6) return scan_head_few<L, 6, kVectors, Go>(args);
    if (args.row_count == 7) return scan_head_few<L, 7, kVectors, Go>(args);
    if (args.row_count == 8) return scan_head_few<L, 8, kVectors, Go>(args);
  }
  for_head_columns<L, kVectors>(args.head_dim, [&](int32_t p, auto vectors, auto count) {
    scan_columns<L, 4, vectors, vectors == kVectors ? Go : StatesGo::home>(args, p, count);
  });
}

template <class L>
void scan_rows(const cpu::ScanArgs& args) {
  if (!args.streams) return scan_head<L, StatesGo::home>(args);
  scan_head<L, StatesGo::past_caches>(args);
  drain_past_caches(L{});
}

}  // namespace
}  // namespace cairn
