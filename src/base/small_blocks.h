// Blocks of up to 32 numbers as small integers with one f16 scale: the arithmetic of keys and
// values in q8_0 and q4_0. One function for all instruction sets: a row is stored once, and the
// compiler vectorizes the loops. The caller rounds scale() to f16 and gives encode() the rounded
// one, so that the codes belong to the scale that is read later. No symbol leaves a file that
// includes this (see base/lanes.h).
#pragma once

#include <cstdint>

namespace cairn {
namespace {

inline constexpr int32_t kSmallBlock = 32;

// The value of a block that holds an infinity, a NaN or what f16 cannot scale: NaN.
inline constexpr float kNoScale = __builtin_nanf("");

[[gnu::always_inline]] inline uint32_t magnitude_bits(float x) {
  return __builtin_bit_cast(uint32_t, x) & 0x7fffffffu;
}

// A scale that f16 can hold, or NaN. 0x7f800000 is infinity; NaN lies above it.
[[gnu::always_inline]] inline float scale_within_half(float scale, uint32_t largest) {
  return largest < 0x7f800000u && scale <= 65504.0f && scale >= -65504.0f ? scale : kNoScale;
}

// s = amax / 127; code = x / s, rounded to nearest, ties to even, within -127..127.
struct Q8Block {
  static constexpr int32_t kDimsPerByte = 1;

  [[gnu::always_inline]] static inline float scale(const float* x, int32_t count) {
    uint32_t largest = 0;
    for (int32_t i = 0; i < count; ++i) {
      const uint32_t magnitude = magnitude_bits(x[i]);
      largest = magnitude > largest ? magnitude : largest;
    }
    return scale_within_half(__builtin_bit_cast(float, largest) / 127.0f, largest);
  }

  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the lower bits.
  [[gnu::always_inline]] static inline void encode(const float* x, int32_t count, float scale,
                                                   uint8_t* codes) {
    constexpr float kRounder = 12582912.0f;
    const bool is_zero = scale == 0 || scale != scale;
    for (int32_t i = 0; i < count; ++i) {
      float code = is_zero ? 0.0f : x[i] / scale;
      code = code < -127.0f ? -127.0f : code;
      code = code > 127.0f ? 127.0f : code;
      codes[i] = uint8_t(__builtin_bit_cast(int32_t, code + kRounder) -
                         __builtin_bit_cast(int32_t, kRounder));
    }
  }

  [[gnu::always_inline]] static inline uint8_t pack(const uint8_t* codes) { return codes[0]; }
  [[gnu::always_inline]] static inline int32_t code_of(uint8_t byte, int32_t) {
    return int8_t(byte);
  }
};

// s = m / -8, m being the number with the largest magnitude (the first of equals);
// code = trunc(x / s + 8.5) within 0..15; the number is (code - 8) * s. Of two dims in a byte, the
// even one is in the lower half.
struct Q4Block {
  static constexpr int32_t kDimsPerByte = 2;

  [[gnu::always_inline]] static inline float scale(const float* x, int32_t count) {
    uint32_t largest = 0;
    float number = 0;
    for (int32_t i = 0; i < count; ++i) {
      const uint32_t magnitude = magnitude_bits(x[i]);
      number = magnitude > largest ? x[i] : number;
      largest = magnitude > largest ? magnitude : largest;
    }
    return scale_within_half(number / -8.0f, largest);
  }

  [[gnu::always_inline]] static inline void encode(const float* x, int32_t count, float scale,
                                                   uint8_t* codes) {
    const bool is_zero = scale == 0 || scale != scale;
    for (int32_t i = 0; i < count; ++i) {
      float code = is_zero ? 8.0f : x[i] / scale + 8.5f;
      code = code < 0.0f ? 0.0f : code;
      code = code > 15.0f ? 15.0f : code;
      codes[i] = uint8_t(int32_t(code));
    }
  }

  [[gnu::always_inline]] static inline uint8_t pack(const uint8_t* codes) {
    return uint8_t(codes[0] | codes[1] << 4);
  }
  [[gnu::always_inline]] static inline int32_t code_of(uint8_t byte, int32_t dim) {
    return (dim % 2 == 0 ? byte & 15 : byte >> 4) - 8;
  }
};

}  // namespace
}  // namespace cairn
