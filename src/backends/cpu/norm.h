// Kernel templates of normalisation, instantiated per instruction set by ops_<isa>.cpp. Same
// bits as backends/reference/norm.cpp: sixteen partial sums and a fixed tree, whatever the vector.
#pragma once

#include "backends/cpu/elementwise.h"

namespace cairn {
namespace {

template <class L>
void rms_norm_row(const cpu::RmsNormArgs& args) {
  for (int32_t group = 0; group < args.group_count; ++group) {
    const float* x = args.x + size_t(group) * size_t(args.group);
    float* out = args.out + size_t(group) * size_t(args.group);
    auto sums = zero_partials(L{});
    for (int32_t i = 0; i < args.group; i += 16) {
      add_squares(sums, x + i, args.group - i < 16 ? args.group - i : 16);
    }
    const float mean = add_tree(sums) / float(args.group);
    const L scale = L(1.0f / __builtin_sqrtf(mean + args.epsilon));
    const float* gain = args.gain == nullptr ? nullptr : args.gain + group * args.gain_step;
    for_lanes<L>(args.group, [&](int32_t i, int32_t count) {
      L normal = load_some<L>(x + i, count) * scale;
      if (gain != nullptr) normal = normal * load_some<L>(gain + i, count);
      store_some(out + i, normal, count);
    });
  }
}

template <class L>
void layer_norm_row(const cpu::LayerNormArgs& args) {
  for (int32_t group = 0; group < args.group_count; ++group) {
    const float* x = args.x + size_t(group) * size_t(args.group);
    float* out = args.out + size_t(group) * size_t(args.group);
    auto sums = zero_partials(L{});
    for (int32_t i = 0; i < args.group; i += 16) {
      add_values(sums, x + i, args.group - i < 16 ? args.group - i : 16);
    }
    const L mean = L(add_tree(sums) / float(args.group));
    for_lanes<L>(args.group, [&](int32_t i, int32_t count) {
      store_some(out + i, load_some<L>(x + i, count) - mean, count);
    });
    auto squares = zero_partials(L{});
    for (int32_t i = 0; i < args.group; i += 16) {
      add_squares(squares, out + i, args.group - i < 16 ? args.group - i : 16);
    }
    const float variance = add_tree(squares) / float(args.group);
    const L scale = L(1.0f / __builtin_sqrtf(variance + args.epsilon));
    const int32_t skip = group * args.gain_step;
    for_lanes<L>(args.group, [&](int32_t i, int32_t count) {
      L normal = load_some<L>(out + i, count) * scale;
      if (args.bias != nullptr) {
        normal = fma(normal, load_some<L>(args.gain + skip + i, count),
                     load_some<L>(args.bias + skip + i, count));
      } else if (args.gain != nullptr) {
        normal = normal * load_some<L>(args.gain + skip + i, count);
      }
      store_some(out + i, normal, count);
    });
  }
}

}  // namespace
}  // namespace cairn
