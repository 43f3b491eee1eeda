// What the block formats share: reading a block from unaligned bytes, units with one or two scales,
// and the order of nibbles. Knows no format.
#pragma once

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

inline void set_scales(Unit& unit, float lower, float upper) {
  unit.scale[0] = lower;
  unit.scale[1] = upper;
  unit.offset[0] = unit.offset[1] = 0;
}

// Weights of whole units by their definition, scale * q + offset: for the formats whose decoded
// value is exactly that in f32, two roundings at most.
template <int kUnitCount, class Integers>
void decode_units(const std::byte* block, float* weights, Integers integers) {
  Unit units[kUnitCount];
  integers(block, units);
  for (const Unit& unit : units) {
    for (int half = 0; half < 2; ++half) {
      for (int i = 16 * half; i < 16 * half + 16; ++i) {
        weights[i] = unit.scale[half] * float(unit.q[i]);
      }
    }
    weights += 32;
  }
}

}  // namespace cairn::quant
