// Plain encoders to compare ours with: the usual one-pass rules, computed on real numbers with
// scales rounded to f16 as a file would hold them. Each returns the weights that a decoder would
// give.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "base/half.h"

namespace cairn::quant::plain {

inline float as_half(float value) {
  return to_float(to_half(value));
}
inline float inverse_or_zero(float value) {
  return value == 0 ? 0 : 1 / value;
}

inline float peak_of(std::span<const float> x) {
  return *std::max_element(x.begin(), x.end(),
                           [](float a, float b) { return std::abs(a) < std::abs(b); });
}

// Q4_0, Q5_0: the peak becomes `low`, codes by truncation after adding one half.
inline void signed_codes(std::span<const float> x, int low, int high, std::span<float> out) {
  const float scale = peak_of(x) / float(low);
  const float inverse = inverse_or_zero(scale);
  for (size_t i = 0; i < x.size(); ++i) {
    const float code = std::trunc(x[i] * inverse + 0.5f - float(low));
    out[i] = as_half(scale) * (std::clamp(code, 0.0f, float(high - low)) + float(low));
  }
}

// Q8_0: the peak becomes 127, rounding half away from zero.
inline void bytes(std::span<const float> x, std::span<float> out) {
  const float scale = std::abs(peak_of(x)) / 127;
  const float inverse = inverse_or_zero(scale);
  for (size_t i = 0; i < x.size(); ++i) out[i] = as_half(scale) * std::round(x[i] * inverse);
}

// Q4_1, Q5_1: from the lowest weight to the highest.
inline void line_codes(std::span<const float> x, int high, std::span<float> out) {
  const auto [lowest, highest] = std::minmax_element(x.begin(), x.end());
  const float scale = (*highest - *lowest) / float(high), min = *lowest;
  const float inverse = inverse_or_zero(scale);
  for (size_t i = 0; i < x.size(); ++i) {
    const float code = std::clamp(std::trunc((x[i] - min) * inverse + 0.5f), 0.0f, float(high));
    out[i] = as_half(scale) * code + as_half(min);
  }
}

// The level nearest to x / scale, times scale.
template <size_t kCount>
float nearest_level(float x, float scale, const std::array<float, kCount>& levels) {
  float best = levels[0] * scale;
  for (const float level : levels) {
    if (std::abs(level * scale - x) < std::abs(best - x)) best = level * scale;
  }
  return best;
}

// MXFP4: the power of two that brings the peak to 4 … 8 (the format's largest number is 6).
inline void mxfp4(std::span<const float> x, std::span<float> out) {
  constexpr std::array<float, 15> kLevels = {0,    .5f, 1,     1.5f, 2,  3,  4, 6,
                                             -.5f, -1,  -1.5f, -2,   -3, -4, -6};
  const float peak = std::abs(peak_of(x));
  const float scale = peak > 0 ? std::exp2(std::floor(std::log2(peak)) - 2) : 0;
  for (size_t i = 0; i < x.size(); ++i) out[i] = nearest_level(x[i], scale, kLevels);
}

// The best of some scales around the one that reaches the peak: round to nearest with a search.
template <class Encode>
void best_of(std::span<const float> x, std::span<float> out, const Encode& encode) {
  double best_error = INFINITY;
  std::vector<float> trial(x.size());
  for (float stretch = 0.8f; stretch < 1.1f; stretch += 0.05f) {
    encode(stretch, std::span<float>(trial));
    double error = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double difference = double(x[i]) - double(trial[i]);
      error += difference * difference;
    }
    if (!(error < best_error)) continue;
    best_error = error;
    std::copy(trial.begin(), trial.end(), out.begin());
  }
}

inline constexpr std::array<float, 16> kIq4 = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

inline void iq4_nl(std::span<const float> x, std::span<float> out) {
  best_of(x, out, [x](float stretch, std::span<float> trial) {
    const float scale = as_half(peak_of(x) * stretch / -127);
    for (size_t i = 0; i < x.size(); ++i) trial[i] = nearest_level(x[i], scale, kIq4);
  });
}

// Q3_K, Q6_K: groups of 16; group scales are integers to `s_high` under the largest of them.
inline void scaled_k(std::span<const float> x, int q_low, int s_high, std::span<float> out) {
  best_of(x, out, [x, q_low, s_high](float stretch, std::span<float> trial) {
    const float low = float(q_low), limit = float(s_high);
    float largest = 0;
    for (size_t g = 0; g < 256; g += 16) {
      largest = std::max(largest, std::abs(peak_of(x.subspan(g, 16)) / low));
    }
    const float step = as_half(largest * stretch / limit);
    for (size_t i = 0; i < 256; ++i) {
      const float peak = peak_of(x.subspan(i / 16 * 16, 16)) * stretch;
      const float s = std::round(peak / low * inverse_or_zero(step));
      const float scale = step * std::clamp(s, -limit - 1, limit);
      const float q = std::round(x[i] * inverse_or_zero(scale));
      trial[i] = scale * std::clamp(q, low, -low - 1);
    }
  });
}

// IQ4_XS: groups of 32 with the levels of IQ4_NL; group scales are integers of -32 … 31.
inline void iq4_xs(std::span<const float> x, std::span<float> out) {
  best_of(x, out, [x](float stretch, std::span<float> trial) {
    const float step = as_half(peak_of(x) * stretch / -127 / 32);
    for (size_t i = 0; i < 256; ++i) {
      const float peak = peak_of(x.subspan(i / 32 * 32, 32)) * stretch;
      const float s = std::round(peak / -127 * inverse_or_zero(step));
      trial[i] = nearest_level(x[i], step * std::clamp(s, -32.0f, 31.0f), kIq4);
    }
  });
}

struct OffsetRule {
  size_t group_size;
  int q_high, level_high;
};

// Q2_K, Q4_K, Q5_K: scales and minima of groups are integers under the largest of them.
inline void offset_k(std::span<const float> x, const OffsetRule& rule, std::span<float> out) {
  best_of(x, out, [x, rule](float stretch, std::span<float> trial) {
    const float q_high = float(rule.q_high), limit = float(rule.level_high);
    std::array<float, 16> scale{}, min{};
    for (size_t g = 0; g < 256 / rule.group_size; ++g) {
      const auto group = x.subspan(rule.group_size * g, rule.group_size);
      const auto [lowest, highest] = std::minmax_element(group.begin(), group.end());
      min[g] = -std::min(*lowest, 0.0f) * stretch;
      scale[g] = std::max(*highest * stretch + min[g], 0.0f) / q_high;
    }
    const float scale_step = as_half(*std::max_element(scale.begin(), scale.end()) / limit);
    const float min_step = as_half(*std::max_element(min.begin(), min.end()) / limit);
    for (size_t i = 0; i < 256; ++i) {
      const size_t g = i / rule.group_size;
      const float s = std::min(std::round(scale[g] * inverse_or_zero(scale_step)), limit);
      const float m = std::min(std::round(min[g] * inverse_or_zero(min_step)), limit);
      const float q = std::round((x[i] + min_step * m) * inverse_or_zero(scale_step * s));
      trial[i] = scale_step * s * std::clamp(q, 0.0f, q_high) - min_step * m;
    }
  });
}

// TQ1_0, TQ2_0: -1, 0, 1 at the best of some scales.
inline void ternary(std::span<const float> x, std::span<float> out) {
  constexpr std::array<float, 3> kTernary = {-1, 0, 1};
  best_of(x, out, [x, kTernary](float stretch, std::span<float> trial) {
    const float scale = as_half(std::abs(peak_of(x)) * 2 * (stretch - 0.6f));
    for (size_t i = 0; i < 256; ++i) trial[i] = nearest_level(x[i], scale, kTernary);
  });
}

}  // namespace cairn::quant::plain
