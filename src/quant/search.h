// Helpers for encoders: weights made finite and scaled, and the search for the scale (and minimum)
// of a group by weighted least squares. Squared errors are weighted by importance. Knows no block
// layout. Every result is deterministic: plain f32 arithmetic in a fixed order, the same on every
// machine.
#pragma once

#include <cstdint>

#include "base/half.h"

namespace cairn::quant {

// A block ready for a search: x[i] * unit is the weight, |x| < 4 (unit is a power of two, so
// squares neither overflow nor vanish), w[i] > 0 its importance relative to the block's mean.
struct Prepared {
  alignas(16) float x[256];
  alignas(16) float w[256];
  float unit;
};

// Weights that are not finite become 0. Importance may be null (all 1); factors that are negative
// or not finite count as 0, and a factor of 0 as a millionth of the mean, so that no group is
// undefined. `count` is a multiple of 4 and at most 256.
void prepare(const float* weights, const float* importance, int count, Prepared& out);

// Makes errors of large weights count more, for formats of few bits: least squares pulls all
// weights towards 0 there, and a model suffers more from that than from the same error elsewhere
// (docs/quantize.md). With r the square of a weight by the block's mean square, factors of
// sqrt(1 + r), 1 + r or nearly r.
enum class Emphasis { mild, strong, full };
void emphasize(Prepared& block, int count, Emphasis emphasis);

// The f16 nearest to value * unit, limited to finite ones. A scale among the subnormals is rounded
// away from zero: one too small would cut the largest weights.
Half stored_scale(float value, float unit);
Half stored_min(float value, float unit);

// The integers of a format: low <= q <= high.
struct Range {
  int low, high;
};

// A group of consecutive weights of a Prepared block.
struct Group {
  const float* x;
  const float* w;
  int count;  // A multiple of 4.
};

// The weight that is largest in magnitude, with its sign; 0 if all are next to nothing.
float peak_of(const Group& group);

// The scale d for which x ~ d * q is best, over candidates near the group's peak; may be negative.
// `candidate_count` trades time for error. 0 for a group of zeros.
float search_scale(const Group& group, Range range, int candidate_count);
// q = round(x / d), clamped; all 0 where d is 0.
void quantize(const Group& group, float scale, Range range, int8_t* q);
// The weighted squared error of quantize().
float error_of(const Group& group, float scale, Range range);

// x ~ scale * q + min with 0 <= q <= high.
struct Line {
  float scale, min;
};

enum class Minimum { any, not_positive };

// The best line; its scale is 0 where all weights are equal (then min is that weight, or 0 if the
// minimum must not be positive and all weights are 0).
Line search_line(const Group& group, int high, Minimum minimum);
void quantize(const Group& group, Line line, int high, int8_t* q);
float error_of(const Group& group, Line line, int high);

}  // namespace cairn::quant
