// Super-blocks for encoders: 256 weights whose groups have integer scales (and minima) under one
// f16 scale (and minimum). Starts from the best real scale of each group (search.h), then picks
// integers by the error that they leave, and fits the f16 numbers to them. Knows no block layout.
#pragma once

#include "quant/search.h"

namespace cairn::quant {

// The f16 scale for a block of 32 weights, x ~ scale * q; never worse than the peak at range.low.
// `candidate_count` as for search_scale(). Returns the scale as it decodes, divided by the unit.
float fit_scale(const Prepared& block, Range range, int candidate_count, Half& stored);

// x ~ scale * q + min for a block of 32 weights; both f16.
struct LineBlock {
  Half scale, min;
  int8_t q[32];
};
void fit_line(const Prepared& block, int q_high, LineBlock& out);

// x ~ scale * s * q with one stored scale and an integer s for each group.
struct ScaledFit {
  Half scale;
  int8_t s[16];
  int8_t q[256];
};
struct ScaledFormat {
  int group_count;  // 8 groups of 32 or 16 groups of 16.
  Range q_range, s_range;
};
void fit_scaled(const Prepared& block, const ScaledFormat& format, ScaledFit& out);
// The same with 8 groups, s in -32 … 31 and the levels of IQ4 (iq4_levels.h): q holds their codes.
void fit_iq4(const Prepared& block, ScaledFit& out);

// x ~ scale * q with q in -1, 0, 1 and one scale for all 256: the best there is.
void fit_ternary(const Prepared& block, Half& scale, int8_t* q);

// x ~ scale * s * q - min * m, s and m integers of 0 … level_high for each group.
struct OffsetFit {
  Half scale, min;
  uint8_t s[16], m[16];
  int8_t q[256];
};
struct OffsetFormat {
  int group_count;  // 8 groups of 32 or 16 groups of 16.
  int q_high;
  int level_high;
};
void fit_offset(const Prepared& block, const OffsetFormat& format, OffsetFit& out);

}  // namespace cairn::quant
