// Helpers for decoding block formats: blocks at any alignment, units with one or two scales, the
// order of nibbles, and decoding as scale * q + offset. Knows no format.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "quant/quant.h"

namespace cairn::quant {

// A copy of the block: blocks in a mapped file need not be aligned.
template <class Block>
Block load(const std::byte* bytes) {
  Block block;
  std::memcpy(&block, bytes, sizeof block);
  return block;
}

template <class Block>
void store(const Block& block, std::byte* bytes) {
  std::memcpy(bytes, &block, sizeof block);
}

inline uint32_t load_u16(const uint8_t* bytes) {
  return uint32_t(bytes[0]) | uint32_t(bytes[1]) << 8;
}

inline uint32_t load_u32(const uint8_t* bytes) {
  return load_u16(bytes) | load_u16(bytes + 2) << 16;
}

inline void store_u16(uint32_t value, uint8_t* bytes) {
  bytes[0] = uint8_t(value & 255);
  bytes[1] = uint8_t(value >> 8 & 255);
}

inline void store_u32(uint32_t value, uint8_t* bytes) {
  store_u16(value, bytes);
  store_u16(value >> 16, bytes + 2);
}

inline void set_scale(Unit& unit, float scale, float offset = 0) {
  unit.scale[0] = unit.scale[1] = scale;
  unit.offset[0] = unit.offset[1] = offset;
}

// 16 bytes to 32 numbers: the low nibbles come first, then the high ones.
inline void unpack_nibbles(const uint8_t* bytes, int8_t* q) {
  for (int i = 0; i < 16; ++i) {
    q[i] = int8_t(bytes[i] & 15);
    q[i + 16] = int8_t(bytes[i] >> 4);
  }
}

// The reverse; of each code the low four bits.
inline void pack_nibbles(const int8_t* q, uint8_t* bytes) {
  for (int i = 0; i < 16; ++i) bytes[i] = uint8_t((q[i] & 15) | q[i + 16] << 4);
}

// Bit i of the four bytes is bit 4 of code i.
inline void pack_fifth_bits(const int8_t* codes, uint8_t* bytes) {
  for (int byte = 0; byte < 4; ++byte) {
    bytes[byte] = 0;
    for (int bit = 0; bit < 8; ++bit) bytes[byte] |= uint8_t((codes[8 * byte + bit] >> 4) << bit);
  }
}

// Weights by the definition, a half unit at a time. For every format here this is bit for bit the
// usual decoder: where that multiplies in another order, the products involved are exact in f32.
template <int kUnitCount, void (*kIntegers)(const std::byte*, Unit*)>
void decode_scaled(const std::byte* block, float* weights) {
  Unit units[kUnitCount];
  kIntegers(block, units);
  for (int half = 0; half < 2 * kUnitCount; ++half) {
    const int8_t* q = units[half / 2].q + 16 * (half % 2);
    const float scale = units[half / 2].scale[half % 2];
    for (int i = 0; i < 16; ++i) weights[16 * half + i] = scale * float(q[i]);
  }
}

// The same for formats with an offset. Apart, since adding an offset of 0 would lose the sign of
// -0.
template <int kUnitCount, void (*kIntegers)(const std::byte*, Unit*)>
void decode_offset(const std::byte* block, float* weights) {
  Unit units[kUnitCount];
  kIntegers(block, units);
  for (int half = 0; half < 2 * kUnitCount; ++half) {
    const int8_t* q = units[half / 2].q + 16 * (half % 2);
    const float scale = units[half / 2].scale[half % 2], offset = units[half / 2].offset[half % 2];
    for (int i = 0; i < 16; ++i) weights[16 * half + i] = scale * float(q[i]) + offset;
  }
}

}  // namespace cairn::quant
