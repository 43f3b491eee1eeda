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

// One row of one vector of channels. The exponentials of different states do not wait for each
// other, so the processor runs them side by side. Strides are from one state to the next.
template <class L, StatesGo Go>
[[gnu::always_inline]] inline void channel_scan_vector(const cpu::ChannelScanArgs& args,
                                                       int32_t row, int32_t channel, int32_t count,
                                                       const float* before, float* after,
                                                       int64_t stride) {
  const L x = load_some<L>(args.x + int64_t(row) * args.x_stride + channel, count);
  const L raw = load_some<L>(args.dt + int64_t(row) * args.dt_stride + channel, count);
  const L dt = elementary::softplus(raw);
  const L fed = x * dt;
  const float* b = args.b + int64_t(row) * args.b_stride;
  const float* c = args.c + int64_t(row) * args.c_stride;
  const float* a = args.decays + channel;
  L total = L(0.0f);
  for (int32_t n = 0; n < args.state_size; ++n) {
    const L decay = elementary::exp(dt * load_some<L>(a, count));
    const L state = fma(fed, L(b[n]), load_some<L>(before, count) * decay);
    total = fma(state, L(c[n]), total);
    if constexpr (Go == StatesGo::past_caches) {
      store_past_caches(after, state);
    } else {
      store_some(after, state, count);
    }
    a += args.channels;
    before += stride;
    after += stride;
  }
  const L d = load_some<L>(args.d + channel, count);
  store_some(args.out + int64_t(row) * args.out_stride + channel, fma(d, x, total), count);
}

// States that come from memory and go there. Their lines lie far apart, which no prefetcher
// follows: so all of them are prefetched before the decays are transposed.
template <class L>
void channel_scan_alone(const cpu::ChannelScanArgs& args) {
  constexpr int32_t kLineFloats = int32_t(cpu::kLineBytes / sizeof(float));
  for (int32_t n = 0; n < args.state_size; ++n) {
    for (int32_t channel = 0; channel < args.channels; channel += kLineFloats) {
      __builtin_prefetch(args.before + int64_t(n) * args.state_stride + channel);
    }
  }
  turn_decays<L>(args);
  // Less than a line at a time would reach the memory in pieces.
  if (args.streams && L::kCount == kLineFloats && args.channels % L::kCount == 0) {
    for (int32_t channel = 0; channel < args.channels; channel += L::kCount) {
      channel_scan_vector<L, StatesGo::past_caches>(args, 0, channel, L::kCount,
                                                    args.before + channel, args.after + channel,
                                                    args.state_stride);
    }
    drain_past_caches(L{});
    return;
  }
  for_lanes<L>(args.channels, [&](int32_t channel, auto count) {
    channel_scan_vector<L, StatesGo::home>(args, 0, channel, count, args.before + channel,
                                           args.after + channel, args.state_stride);
  });
}

// Rows stream past the channels' states and decays, which stay in the first cache: in room of their
// own, because where states are kept those of one channel lie a power of two apart, or nearly, and
// would push each other out.
template <class L>
void channel_scan_rows(const cpu::ChannelScanArgs& args) {
  if (args.row_count == 1 && args.before != nullptr) return channel_scan_alone<L>(args);
  turn_decays<L>(args);
  const int64_t stride = args.channels;
  const auto each_vector = [&](const auto& body) {
    for (int32_t n = 0; n < args.state_size; ++n) {
      for_lanes<L>(args.channels, [&](int32_t channel, auto count) {
        body(args.states + n * stride + channel, int64_t(n) * args.state_stride + channel, count);
      });
    }
  };
  each_vector([&](float* here, int64_t there, auto count) {
    const L state = args.before == nullptr ? L(0.0f) : load_some<L>(args.before + there, count);
    store_some(here, state, count);
  });
  for (int32_t row = 0; row < args.row_count; ++row) {
    for_lanes<L>(args.channels, [&](int32_t channel, auto count) {
      float* states = args.states + channel;
      channel_scan_vector<L, StatesGo::home>(args, row, channel, count, states, states, stride);
    });
  }
  each_vector([&](float* here, int64_t there, auto count) {
    store_some(args.after + there, load_some<L>(here, count), count);
  });
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

// Moves N vectors of the head's width on by T rows: each state is loaded and stored once for T
// rows, and the T * N sums of outputs hide each other's latency. `count` is that of the last
// vector. States that go past the caches come from memory too, and are prefetched.
template <class L, int32_t T, int32_t N, StatesGo Go = StatesGo::home>
[[gnu::always_inline]] inline void scan_block(const cpu::ScanArgs& args, int32_t row, int32_t p,
                                              int32_t count, const float* before) {
  L fed[T][N], decay[T], total[T][N];
  const float *b[T], *c[T];
  repeat<T>([&](auto t) {
    b[t] = args.b + int64_t(row + t) * args.b_stride;
    c[t] = args.c + int64_t(row + t) * args.c_stride;
    decay[t] = L(args.decay[row + t]);
    const float* x = args.x + int64_t(row + t) * args.x_stride + p;
    repeat<N>([&](auto i) {
      const L input = load_some<L>(x + i * L::kCount, N > 1 ? L::kCount : count);
      fed[t][i] = input * L(args.dt[row + t]);
      total[t][i] = L(0.0f);
    });
  });
  const float* source = before + p;
  float* target = args.after + p;
  for (int32_t n = 0; n < args.state_size; ++n) {
    if constexpr (Go == StatesGo::past_caches) fetch_ahead<L, N>(source);
    repeat<N>([&](auto i) {
      L state = load_some<L>(source + i * L::kCount, N > 1 ? L::kCount : count);
      repeat<T>([&](auto t) {
        state = fma(fed[t][i], L(b[t][n]), state * decay[t]);
        total[t][i] = fma(state, L(c[t][n]), total[t][i]);
      });
      if constexpr (Go == StatesGo::past_caches) {
        store_past_caches(target + i * L::kCount, state);
      } else {
        store_some(target + i * L::kCount, state, N > 1 ? L::kCount : count);
      }
    });
    source += args.head_dim;
    target += args.head_dim;
  }
  const L d = L(args.d);
  repeat<T>([&](auto t) {
    const float* x = args.x + int64_t(row + t) * args.x_stride + p;
    float* out = args.out + int64_t(row + t) * args.out_stride + p;
    repeat<N>([&](auto i) {
      const int32_t lanes = N > 1 ? L::kCount : count;
      const L input = load_some<L>(x + i * L::kCount, lanes);
      store_some(out + i * L::kCount, fma(d, input, total[t][i]), lanes);
    });
  });
}

// All rows past N vectors of the head's width.
template <class L, int32_t N>
void scan_slice(const cpu::ScanArgs& args, int32_t p, int32_t count) {
  const float* before = args.before;
  int32_t row = 0;
  for (; row + 4 <= args.row_count; row += 4) {
    scan_block<L, 4, N>(args, row, p, count, before);
    before = args.after;
  }
  for (; row < args.row_count; ++row) {
    scan_block<L, 1, N>(args, row, p, count, before);
    before = args.after;
  }
}

// A row alone, four vectors at a time while there are so many; how far that went.
template <class L, StatesGo Go>
[[gnu::always_inline]] inline int32_t scan_row_alone(const cpu::ScanArgs& args) {
  int32_t p = 0;
  for (; p + 4 * L::kCount <= args.head_dim; p += 4 * L::kCount) {
    scan_block<L, 1, 4, Go>(args, 0, p, L::kCount, args.before);
  }
  return p;
}

// Many rows: one vector at a time, whose states stay in the first cache. Few rows: four at a time.
template <class L>
void scan_rows(const cpu::ScanArgs& args) {
  int32_t p = 0;
  if (args.streams) {
    p = scan_row_alone<L, StatesGo::past_caches>(args);
    drain_past_caches(L{});
  } else if (args.row_count == 1) {
    p = scan_row_alone<L, StatesGo::home>(args);
  } else if (args.row_count < 4) {
    for (; p + 4 * L::kCount <= args.head_dim; p += 4 * L::kCount) {
      scan_slice<L, 4>(args, p, L::kCount);
    }
  }
  for (; p < args.head_dim; p += L::kCount) {
    const int32_t left = args.head_dim - p;
    scan_slice<L, 1>(args, p, left < L::kCount ? left : L::kCount);
  }
}

}  // namespace
}  // namespace cairn
