// Fits of the formats with code books (grid.h): for each run of weights the entry of the grid and
// the signs, for each group an odd multiple of one stored scale. Entries and signs are the best
// there are for the scales, not near ones; scales are searched. Knows no block layout. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"

namespace cairn::quant {

enum class GridSigns {
  stored,  // Entries are magnitudes; each weight has a sign of its own.
  even,    // Of 8 weights an even number is negative (even_signs() in grid.h).
  shifted  // Entries have signs; all values of a cell are an eighth higher, or lower.
};

struct GridFormat {
  const uint16_t* grid;
  int32_t entry_count;
  int32_t entry_weights;  // 8 weights of 2 bits, or 4 of 3.
  int8_t levels[8];       // Of codes: what grid.h's expand_…() make of them, without the eighth.
  GridSigns signs;
  int32_t cell_weights;  // That share the choice of signs' number or of the eighth: 8 or 32.
  int32_t group_count;   // 8 groups of 32 or 16 of 16.
  int32_t s_high;        // A group's scale is step * (2 * s + 1) with s of 0 … s_high.
  float stored_factor;   // The f16 in the file is step * stored_factor; a power of two.
};

struct GridFit {
  Half scale;          // Stretched (grid_fit.cpp).
  float fitted_scale;  // Before that: what entries and signs were chosen for.
  uint8_t s[16];
  uint16_t index[64];  // Of each run of entry_weights.
  uint8_t signs[32];   // Bit i: weight i of the 8 is negative.
  bool is_low[32];     // Of each 8 weights: an eighth is subtracted, not added.
};

// REQUIRES: 256 weights; `importance` may be null (quant.h says what it means).
void fit_grid(const float* weights, const float* importance, const GridFormat& format,
              GridFit& out);

// The s of two groups in each byte, the first lowest.
inline void pack_scales(const GridFit& fit, std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = uint8_t(fit.s[2 * i] | fit.s[2 * i + 1] << 4);
  }
}

// Of a group of 32 weights with signs that are even: four times seven of them, and s on top.
inline uint32_t signs_and_scale(const GridFit& fit, int group) {
  uint32_t word = uint32_t(fit.s[group]) << 28;
  for (int part = 0; part < 4; ++part) {
    word |= uint32_t(fit.signs[4 * group + part] & 127) << (7 * part);
  }
  return word;
}

}  // namespace cairn::quant
