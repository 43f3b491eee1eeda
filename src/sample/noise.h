// Gumbel noise from a counter: a pure function of (seed, position, stream, token), the same on
// every machine. Adding it to log-probabilities and taking the largest draws from their
// distribution. Thread-safe: pure.
#pragma once

#include <bit>
#include <cstdint>

#include "base/elementary.h"
#include "base/ids.h"
#include "base/philox.h"

namespace cairn::sample {

// Distinguishes independent draws at one position.
enum class NoiseStream : uint32_t { choice = 0, xtc = 1 };

// The bounds of gumbel_noise, with a margin: a token whose logit is lower by more than their
// distance can never win.
constexpr float kNoiseMin = -2.9f;
constexpr float kNoiseMax = 22.9f;

// u = (word + 1/2) / 2^32, rounded down to f32: in (0, 1), with full precision near 0.
inline float unit_interval(uint32_t word) {
  uint64_t doubled = 2 * uint64_t(word) + 1;
  const int excess = int(std::bit_width(doubled)) - 24;
  if (excess > 0) doubled &= ~uint64_t(0) << excess;
  return float(doubled) * 0x1p-33f;
}

// -log(1 - u) without losing small u: the error of 1 - u is divided out (Kahan's log1p).
inline float exponential(float u) {
  const float rest = 1.0f - u;
  if (rest == 1.0f) return u;
  return -elementary::log(rest) * (u / (1.0f - rest));
}

// No larger word makes a noise above `noise`: -log(-log(1 - u)) > d means u < 1 - e^(-e^-d), which
// is less than e^-d; the factor is room for all roundings.
inline uint32_t word_for_noise(float noise) {
  if (!(noise > 0)) return ~uint32_t(0);
  const double word = 0x1p32 * 1.0001 * double(elementary::exp(0.0f - noise)) + 2;
  return word < 0x1p32 - 1 ? uint32_t(word) : ~uint32_t(0);
}

inline uint32_t noise_word(uint64_t seed, int32_t position, NoiseStream stream, Token token) {
  return philox4x32({uint32_t(index_of(token)), uint32_t(position), uint32_t(stream), 0},
                    {uint32_t(seed), uint32_t(seed >> 32)})[0];
}

inline float noise_of(uint32_t word) {
  return -elementary::log(exponential(unit_interval(word)));
}

inline float gumbel_noise(uint64_t seed, int32_t position, NoiseStream stream, Token token) {
  return noise_of(noise_word(seed, position, stream, token));
}

}  // namespace cairn::sample
