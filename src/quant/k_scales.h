// The 6-bit scales and minima of Q4_K and Q5_K: eight of each in twelve bytes. Bytes 0-3 hold
// scales 0-3 and bytes 4-7 minima 0-3 in their low 6 bits; bytes 8-11 hold the low nibbles of
// scales 4-7 (low) and minima 4-7 (high), whose upper 2 bits sit in the upper 2 bits of bytes 0-3
// and 4-7.
#pragma once

#include <cstdint>

namespace cairn::quant {

struct KScales {
  uint8_t scale[8];
  uint8_t min[8];
};

inline KScales unpack_k_scales(const uint8_t* bytes) {
  KScales out;
  for (int i = 0; i < 4; ++i) {
    out.scale[i] = bytes[i] & 63;
    out.min[i] = bytes[i + 4] & 63;
    out.scale[i + 4] = uint8_t((bytes[i + 8] & 15) | bytes[i] >> 6 << 4);
    out.min[i + 4] = uint8_t(bytes[i + 8] >> 4 | bytes[i + 4] >> 6 << 4);
  }
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
