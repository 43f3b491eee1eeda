// Text of the recurrent kernels (short convolution, the scans of Mamba-1 and Mamba-2); compiled
// once for each instruction set by ops_<isa>.cpp. Same bits as conv.cpp, mamba.cpp and mamba2.cpp
// of backends/reference. Vectors run across channels, tokens stream past: what a channel remembers
// stays in registers (convolution) or in the first cache (scan).
#pragma once

#include "backends/cpu/elementwise.h"
#include "backends/cpu/repeat.h"

namespace cairn {
namespace {

// The inputs of `count` channels from `channel` in a row of the slice; negative rows: the tail.
template <class L>
[[gnu::always_inline]] inline L conv_input(const cpu::ConvArgs& args, int32_t row, int32_t channel,
                                           int32_t count) {
  if (row >= 0) {
    return load_some<L>(args.x + int64_t(row) * args.x_stride + channel, count);
  }
  if (args.tail == nullptr) return L(0.0f);
  const float* tail = args.tail + int64_t(args.kernel - 1 + row) * args.channels;
  return load_some<L>(tail + channel, count);
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

// Taps known to the compiler: weights and the last inputs stay in registers.
template <class L, int32_t Taps>
void short_conv_taps(const cpu::ConvArgs& args) {
  for_lanes<L>(args.channels, [&](int32_t channel, int32_t count) {
    L weight[Taps], history[Taps];
    for (int32_t tap = 0; tap < Taps; ++tap) {
      weight[tap] = L::load_strided(args.weight + int64_t(channel) * Taps + tap, Taps, count);
    }
    for (int32_t tap = 0; tap < Taps - 1; ++tap) {
      history[tap + 1] = conv_input<L>(args, args.first_row - (Taps - 1) + tap, channel, count);
    }
    const L bias = conv_bias<L>(args, channel, count);
    for (int32_t row = args.first_row; row < args.first_row + args.row_count; ++row) {
      for (int32_t tap = 0; tap < Taps - 1; ++tap) history[tap] = history[tap + 1];
      history[Taps - 1] = conv_input<L>(args, row, channel, count);
      L total = bias;
      for (int32_t tap = 0; tap < Taps; ++tap) total = fma(weight[tap], history[tap], total);
      conv_output(args, row, channel, count, total);
    }
  });
}

template <class L>
void short_conv_any(const cpu::ConvArgs& args) {
  for_lanes<L>(args.channels, [&](int32_t channel, int32_t count) {
    const L bias = conv_bias<L>(args, channel, count);
    const float* weights = args.weight + int64_t(channel) * args.kernel;
    for (int32_t row = args.first_row; row < args.first_row + args.row_count; ++row) {
      L total = bias;
      for (int32_t tap = 0; tap < args.kernel; ++tap) {
        const L x = conv_input<L>(args, row - (args.kernel - 1) + tap, channel, count);
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

template <class L>
void turn_decays(const cpu::TurnArgs& args) {
  for (int32_t n = 0; n < args.state_size; ++n) {
    for_lanes<L>(args.channels, [&](int32_t channel, int32_t count) {
      const float* from = args.from + int64_t(channel) * args.state_size + n;
      store_some(args.to + int64_t(n) * args.channels + channel,
                 L::load_strided(from, args.state_size, count), count);
    });
  }
}

// One row of one vector of channels. The exponentials of different states do not wait for each
// other, so the processor runs them side by side.
template <class L>
[[gnu::always_inline]] inline void channel_scan_vector(const cpu::ChannelScanArgs& args,
                                                       int32_t row, int32_t channel, int32_t count,
                                                       const float* before) {
  const L x = load_some<L>(args.x + int64_t(row) * args.x_stride + channel, count);
  const L raw = load_some<L>(args.dt + int64_t(row) * args.dt_stride + channel, count);
  const L dt = elementary::softplus(raw);
  const L fed = x * dt;
  const float* b = args.b + int64_t(row) * args.b_stride;
  const float* c = args.c + int64_t(row) * args.c_stride;
  const float* a = args.a + channel;
  float* after = args.after + channel;
  L total = L(0.0f);
  for (int32_t n = 0; n < args.state_size; ++n) {
    const L decay = elementary::exp(dt * load_some<L>(a, count));
    const L old = before == nullptr ? L(0.0f) : load_some<L>(before, count);
    const L state = fma(fed, L(b[n]), old * decay);
    total = fma(state, L(c[n]), total);
    store_some(after, state, count);
    a += args.channels;
    after += args.state_stride;
    if (before != nullptr) before += args.state_stride;
  }
  const L d = load_some<L>(args.d + channel, count);
  store_some(args.out + int64_t(row) * args.out_stride + channel, fma(d, x, total), count);
}

// Rows stream past the channels' states and decays, which stay in the first cache.
template <class L>
void channel_scan_rows(const cpu::ChannelScanArgs& args) {
  const float* before = args.before;
  for (int32_t row = 0; row < args.row_count; ++row) {
    for_lanes<L>(args.channels, [&](int32_t channel, int32_t count) {
      channel_scan_vector<L>(args, row, channel, count,
                             before == nullptr ? nullptr : before + channel);
    });
    before = args.after;
  }
}

template <class L>
void scan_step_sizes(const cpu::ScanStepArgs& args) {
  const L a = L(args.a), bias = L(args.bias);
  for_lanes<L>(args.count, [&](int32_t row, int32_t count) {
    const float* raw = args.raw + int64_t(row) * args.raw_stride;
    const L dt = elementary::softplus(L::load_strided(raw, args.raw_stride, count) + bias);
    store_some(args.dt + row, dt, count);
    store_some(args.decay + row, elementary::exp(dt * a), count);
  });
}

// Moves N vectors of the head's width on by T rows: each state is loaded and stored once for T
// rows, and the T * N sums of outputs hide each other's latency. `count` is that of the last
// vector.
template <class L, int32_t T, int32_t N>
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
    repeat<N>([&](auto i) {
      L state = load_some<L>(source + i * L::kCount, N > 1 ? L::kCount : count);
      repeat<T>([&](auto t) {
        state = fma(fed[t][i], L(b[t][n]), state * decay[t]);
        total[t][i] = fma(state, L(c[t][n]), total[t][i]);
      });
      store_some(target + i * L::kCount, state, N > 1 ? L::kCount : count);
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

// Many rows: one vector at a time, whose states stay in the first cache. Few rows: four at a time.
template <class L>
void scan_rows(const cpu::ScanArgs& args) {
  int32_t p = 0;
  if (args.row_count < 4) {
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
