// Weights for the tests of block formats: seeded noise of several shapes, and errors measured in
// f64.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "quant/quant.h"

namespace cairn::quant {

inline std::vector<float> gaussian(size_t count, float mean, float deviation, uint32_t seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> noise(mean, deviation);
  std::vector<float> out(count);
  for (float& v : out) v = noise(bits);
  return out;
}

struct Sample {
  std::string name;
  std::vector<float> weights;
};

// The shapes that weights of models take, and some that only an unlucky file has.
inline std::vector<Sample> samples(size_t count) {
  std::vector<Sample> out = {
      {"gaussian", gaussian(count, 0, 0.02f, 1)}, {"biased", gaussian(count, 1, 0.05f, 2)},
      {"tiny", gaussian(count, 0, 2e-6f, 3)},     {"heavy tails", gaussian(count, 0, 0.02f, 4)},
      {"uniform", gaussian(count, 0, 1, 5)},      {"uneven groups", gaussian(count, 0, 1, 6)}};
  const std::vector<float> other = gaussian(count, 0, 1, 7);
  for (size_t i = 0; i < count; ++i) {
    out[3].weights[i] *= std::exp(other[i]);
    out[4].weights[i] = 0.05f * std::erf(out[4].weights[i]);
    out[5].weights[i] *= std::exp(1.5f * other[i / 64 * 64]);
  }
  return out;
}

inline std::vector<float> round_trip(const Type& type, const std::vector<float>& weights,
                                     std::span<const float> importance = {}) {
  std::vector<std::byte> row(row_bytes(type, int64_t(weights.size())));
  encode_row(type, weights, row, importance);
  std::vector<float> restored(weights.size());
  decode_row(type, row, restored);
  return restored;
}

// The root of the (weighted) mean squared error, relative to that of the weights.
inline double relative_error(const std::vector<float>& weights, const std::vector<float>& restored,
                             std::span<const float> importance = {}) {
  double error = 0, power = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double factor = importance.empty() ? 1.0 : double(importance[i]);
    const double difference = double(weights[i]) - double(restored[i]);
    error += factor * difference * difference;
    power += factor * double(weights[i]) * double(weights[i]);
  }
  return std::sqrt(error / power);
}

}  // namespace cairn::quant
