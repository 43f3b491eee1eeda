// Four floats side by side for the encoders' searches, by the vector extension that g++ and clang++
// share: the same results as four scalar operations, whatever the machine.
#pragma once

#include <cstring>

namespace cairn::quant {

using F4 = float __attribute__((vector_size(16)));

inline F4 splat(float value) {
  return F4{value, value, value, value};
}

inline F4 load4(const float* values) {
  F4 lanes;
  std::memcpy(&lanes, values, sizeof lanes);
  return lanes;
}

inline void store4(F4 lanes, float* values) {
  std::memcpy(values, &lanes, sizeof lanes);
}

inline F4 lower_of(F4 a, F4 b) {
  return a < b ? a : b;
}
inline F4 higher_of(F4 a, F4 b) {
  return a > b ? a : b;
}
inline float total(F4 v) {
  return (v[0] + v[1]) + (v[2] + v[3]);
}

// Nearest integer, ties to even, within limits below 2^22 in magnitude: adding 1.5 * 2^23 leaves
// no bits behind the point.
inline F4 round_within(F4 v, F4 low, F4 high) {
  const F4 magic = splat(0x1.8p23f);
  return (lower_of(higher_of(v, low), high) + magic) - magic;
}

}  // namespace cairn::quant
