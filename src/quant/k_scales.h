// The 6-bit scales and minima of Q4_K and Q5_K: eight of each in twelve bytes. Bytes 0-3 hold
// scales 0-3 and bytes 4-7 minima 0-3 in their low 6 bits; bytes 8-11 hold the low nibbles of
// scales 4-7 (low) and minima 4-7 (high), whose upper 2 bits sit in the upper 2 bits of bytes 0-3
// and 4-7.
#pragma once

#include <cstdint>
#include <cstring>

namespace cairn::quant {

struct KScales {
  uint8_t scale[8];
  uint8_t min[8];
};

inline KScales unpack_k_scales(const uint8_t* bytes) {
  // Four bytes at a time.
  uint32_t first, second, third;
  std::memcpy(&first, bytes, 4);
  std::memcpy(&second, bytes + 4, 4);
  std::memcpy(&third, bytes + 8, 4);
  const uint32_t words[4] = {
      first & 0x3f3f3f3fu, (third & 0x0f0f0f0fu) | (first >> 6 & 0x03030303u) << 4,
      second & 0x3f3f3f3fu, (third >> 4 & 0x0f0f0f0fu) | (second >> 6 & 0x03030303u) << 4};
  KScales out;
  static_assert(sizeof out == sizeof words);
  std::memcpy(&out, words, sizeof out);
  return out;
}

inline void pack_k_scales(const KScales& in, uint8_t* bytes) {
  for (int i = 0; i < 4; ++i) {
    bytes[i] = uint8_t(in.scale[i] | in.scale[i + 4] >> 4 << 6);
    bytes[i + 4] = uint8_t(in.min[i] | in.min[i + 4] >> 4 << 6);
    bytes[i + 8] = uint8_t((in.scale[i + 4] & 15) | (in.min[i + 4] & 15) << 4);
  }
}

}  // namespace cairn::quant
