// Code books of the IQ formats: a grid index names the magnitudes of 8 (IQ1, IQ2) or 4 (IQ3)
// consecutive weights. Entries are packed, first weight in the lowest bits. The numbers are facts
// of the GGUF format and stand in grid_iq1.cpp, grid_iq2.cpp and grid_iq3.cpp.
#pragma once

#include <bit>
#include <cstdint>

namespace cairn::quant {

extern const uint16_t kGridIq1[2048];    // 2 bits a weight: value + 1.
extern const uint16_t kGridIq2Xxs[256];  // 2 bits a weight: 0, 1, 2 for magnitudes 8, 25, 43.
extern const uint16_t kGridIq2Xs[512];
extern const uint16_t kGridIq2S[1024];
extern const uint16_t kGridIq3Xxs[256];  // 3 bits a weight: magnitudes 4, 12, … 52, 62.
extern const uint16_t kGridIq3S[512];    // 3 bits a weight: magnitudes 1, 3, … 15.

// Sign bits of 8 weights from the 7 that are stored: the eighth makes their number even.
inline uint32_t even_signs(uint32_t stored) {
  return stored | uint32_t(std::popcount(stored) & 1) << 7;
}

// Weight i is negative where bit i of `signs` is set.
inline void expand_iq2(uint32_t packed, uint32_t signs, int8_t* q) {
  constexpr int8_t kMagnitude[4] = {8, 25, 43, 0};  // Code 3 does not occur in a grid.
  for (int i = 0; i < 8; ++i) {
    const int8_t magnitude = kMagnitude[packed >> (2 * i) & 3];
    q[i] = int8_t(signs >> i & 1 ? -magnitude : magnitude);
  }
}

inline void expand_iq3(uint32_t packed, uint32_t signs, const int8_t (&magnitudes)[8], int8_t* q) {
  for (int i = 0; i < 4; ++i) {
    const int8_t magnitude = magnitudes[packed >> (3 * i) & 7];
    q[i] = int8_t(signs >> i & 1 ? -magnitude : magnitude);
  }
}

// IQ1 adds or subtracts an eighth to each value in -1, 0, 1; eight times that is an integer.
inline void expand_iq1(uint32_t packed, bool negative_delta, int8_t* q) {
  const int delta = negative_delta ? -1 : 1;
  for (int i = 0; i < 8; ++i) q[i] = int8_t(8 * (int(packed >> (2 * i) & 3) - 1) + delta);
}

}  // namespace cairn::quant
