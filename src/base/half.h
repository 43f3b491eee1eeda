// Conversions between f32 and the two 16-bit formats: IEEE binary16 (f16) and the upper half of an
// f32 (bf16). Exact when widening; round to nearest, ties to even, when narrowing; NaN stays NaN,
// subnormals are kept. Bit for bit what F16C and AVX512-BF16's round-to-nearest do.
#pragma once

#include <bit>
#include <cstdint>

namespace cairn {

enum class Half : uint16_t {};      // The bits of an IEEE binary16.
enum class BFloat16 : uint16_t {};  // The upper 16 bits of an IEEE binary32.

inline float to_float(BFloat16 b) {
  return std::bit_cast<float>(uint32_t(b) << 16);
}

inline float to_float(Half h) {
  const uint32_t sign = (uint32_t(h) & 0x8000u) << 16;
  const uint32_t magnitude = uint32_t(h) & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  // Below the smallest normal the value is an integer times 2^-24; f32 holds it exactly.
  if (magnitude < 0x0400u) {
    const float value = float(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + ((127u - 15u) << 23)));
}

inline BFloat16 to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return BFloat16((bits >> 16) | 0x40u);  // Quiet NaN.
  return BFloat16((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline Half to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return Half(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return Half(sign | 0x7c00u);  // Rounds to 65536 or more: infinity.
  if (magnitude < 0x38800000u) {
    // A subnormal f16: adding 0.5 puts 2^-24 at the last place of the sum, which rounds it.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return Half(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return Half(sign | ((rounded - ((127u - 15u) << 23)) >> 13));
}

}  // namespace cairn
