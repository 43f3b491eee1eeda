// Kernel templates on residual streams and for a row's upper tail, instantiated per
// instruction set by ops_<isa>.cpp. Same bits as backends/reference/streams.cpp.
#pragma once

#include "backends/cpu/elementwise.h"

namespace cairn {
namespace {

template <class L>
void mix_streams_row(const cpu::MixStreamsArgs& args) {
  const size_t width = size_t(args.width);
  for (int32_t stream = 0; stream < args.out_count; ++stream) {
    const float* a = args.a + size_t(stream) * width;
    float* out = args.out + size_t(stream) * width;
    for_lanes<L>(args.width, [&](int32_t i, auto count) {
      L total = load_some<L>(a + i, count);
      for (int32_t j = 0; j < args.in_count; ++j) {
        const L b = load_some<L>(args.b + size_t(j) * width + i, count);
        const float own =
            args.coefficients == nullptr ? 0.0f : args.coefficients[stream * args.in_count + j];
        total = fma(L(own + args.offset), b, total);
      }
      store_some(out + i, total, count);
    });
  }
}

template <class L>
void gaussian_topk_row(const cpu::GaussianTopkArgs& args) {
  auto sums = zero_partials(L{});
  for (int32_t i = 0; i < args.count; i += 16) {
    add_values(sums, args.x + i, args.count - i < 16 ? args.count - i : 16);
  }
  const L mean = L(add_tree(sums) / float(args.count));
  for_lanes<L>(args.count, [&](int32_t i, auto count) {
    store_some(args.out + i, load_some<L>(args.x + i, count) - mean, count);
  });
  auto squares = zero_partials(L{});
  for (int32_t i = 0; i < args.count; i += 16) {
    add_squares(squares, args.out + i, args.count - i < 16 ? args.count - i : 16);
  }
  const L cut = L(args.deviations * __builtin_sqrtf(add_tree(squares) / float(args.count)));
  for_lanes<L>(args.count, [&](int32_t i, auto count) {
    store_some(args.out + i, larger(load_some<L>(args.out + i, count) - cut, L(0.0f)), count);
  });
}

}  // namespace
}  // namespace cairn
