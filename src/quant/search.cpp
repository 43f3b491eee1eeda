// Scales by trial and least squares. A candidate scale fixes integers; given integers, the best
// scale is a quotient of sums, and the squared error it leaves follows from the same sums. The best
// candidate is then improved by alternating the two steps.
#include "quant/search.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "quant/lanes.h"

namespace cairn::quant {
namespace {

constexpr int kRefinements = 2;
constexpr int kShifts = 6;  // Of either end of a line.

// A group whose weights differ by less than this part of the block's largest weight is one level:
// no format resolves it, and inverses of such steps would overflow.
constexpr float kNothing = 1e-30f;

// The extremes of a group; the order of comparisons does not matter.
struct Extremes {
  float lowest, highest;
};

Extremes extremes_of(const float* x, int count) {
  F4 lowest = load4(x), highest = lowest;
  for (int i = 4; i < count; i += 4) {
    const F4 v = load4(x + i);
    lowest = lower_of(lowest, v);
    highest = higher_of(highest, v);
  }
  return {std::min(std::min(lowest[0], lowest[1]), std::min(lowest[2], lowest[3])),
          std::max(std::max(highest[0], highest[1]), std::max(highest[2], highest[3]))};
}

// The power of two above `largest`, within what f32 can invert; 1 for 0.
float unit_above(float largest) {
  if (largest == 0) return 1;
  const int exponent = int(std::bit_cast<uint32_t>(largest) >> 23) - 126;
  return std::bit_cast<float>(uint32_t(std::clamp(exponent, -100, 126) + 127) << 23);
}

void prepare_importance(const float* importance, int count, float* w) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    w[i] = std::isfinite(importance[i]) && importance[i] > 0 ? importance[i] : 0;
    sum += double(w[i]);
  }
  const double mean = sum / count;
  for (int i = 0; i < count; ++i) w[i] = mean > 0 ? float(double(w[i]) / mean) + 1e-6f : 1.0f;
}

Half finite_half(float value) {
  return to_half(std::clamp(value, -65504.0f, 65504.0f));
}

// Of x ~ d * q for the q that a candidate 1 / d gives.
struct ScaleSums {
  float xq, qq;
  float gain() const {
    return qq > 0 ? xq * xq / qq : 0;
  }  // By how much d = xq / qq cuts the error.
};

ScaleSums scale_sums(const Group& group, float inverse, Range range) {
  const F4 low = splat(float(range.low)), high = splat(float(range.high)), factor = splat(inverse);
  F4 xq = splat(0), qq = splat(0);
  for (int i = 0; i < group.count; i += 4) {
    const F4 x = load4(group.x + i);
    const F4 q = round_within(x * factor, low, high);
    const F4 wq = load4(group.w + i) * q;
    xq += wq * x;
    qq += wq * q;
  }
  return {total(xq), total(qq)};
}

// Of x ~ scale * q + min for given q: everything that depends on q.
struct LineSums {
  float q, qq, xq;
};

// What does not depend on q.
struct LineTotals {
  float w, x, xx;
};

LineSums line_sums(const Group& group, Line guess, int q_high) {
  const F4 low = splat(0), high = splat(float(q_high));
  const F4 min = splat(guess.min), factor = splat(1 / guess.scale);
  F4 sum_q = splat(0), sum_qq = splat(0), sum_xq = splat(0);
  for (int i = 0; i < group.count; i += 4) {
    const F4 x = load4(group.x + i);
    const F4 q = round_within((x - min) * factor, low, high);
    const F4 wq = load4(group.w + i) * q;
    sum_q += wq;
    sum_qq += wq * q;
    sum_xq += wq * x;
  }
  return {total(sum_q), total(sum_qq), total(sum_xq)};
}

LineTotals line_totals(const Group& group) {
  F4 w = splat(0), x = splat(0), xx = splat(0);
  for (int i = 0; i < group.count; i += 4) {
    const F4 weight = load4(group.w + i), value = load4(group.x + i);
    w += weight;
    x += weight * value;
    xx += weight * value * value;
  }
  return {total(w), total(x), total(xx)};
}

struct LineFit {
  Line line;
  float error;
};

// The best line for the integers that `guess` gives, and the error that it leaves with them.
LineFit refit(const Group& group, const LineTotals& t, Line guess, int high, Minimum minimum) {
  const LineSums s = line_sums(group, guess, high);
  const float determinant = t.w * s.qq - s.q * s.q;
  Line line = guess;
  if (determinant > 0) {
    const float inverse = 1 / determinant;
    line.scale = (t.w * s.xq - t.x * s.q) * inverse;
    line.min = (s.qq * t.x - s.q * s.xq) * inverse;
  }
  if (minimum == Minimum::not_positive && line.min > 0) {
    line.min = 0;
    if (s.qq > 0) line.scale = s.xq / s.qq;
  }
  if (!(line.scale > 0)) line = guess;
  const float error = t.xx + line.scale * (line.scale * s.qq - 2 * s.xq + 2 * line.min * s.q) +
                      line.min * (line.min * t.w - 2 * t.x);
  return {line, error};
}

}  // namespace

void prepare(const float* weights, const float* importance, int count, Prepared& out) {
  for (int i = 0; i < count; i += 4) {
    const F4 v = load4(weights + i);
    store4(v - v == splat(0) ? v : splat(0), out.x + i);  // Infinity minus itself is NaN, too.
  }
  const auto [lowest, highest] = extremes_of(out.x, count);
  out.unit = unit_above(std::max(-lowest, highest));
  const F4 inverse = splat(1 / out.unit);
  for (int i = 0; i < count; i += 4) store4(load4(out.x + i) * inverse, out.x + i);
  if (importance != nullptr) {
    prepare_importance(importance, count, out.w);
  } else {
    std::fill(out.w, out.w + count, 1.0f);
  }
}

void emphasize(Prepared& block, int count, Emphasis emphasis) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += double(block.x[i]) * double(block.x[i]);
  if (sum == 0) return;
  for (int i = 0; i < count; ++i) {
    const double part = double(block.x[i]) * double(block.x[i]) * count / sum;
    const double factor = emphasis == Emphasis::mild     ? std::sqrt(1 + part)
                          : emphasis == Emphasis::strong ? 1 + part
                                                         : 1e-4 + part;
    block.w[i] *= float(factor);
  }
}

Half stored_min(float value, float unit) {
  return finite_half(value * unit);
}

Half stored_scale(float value, float unit) {
  const Half nearest = finite_half(value * unit);
  const uint32_t bits = uint32_t(nearest);
  const bool subnormal = (bits & 0x7fffu) < 0x400u;
  const bool shrunk = std::abs(to_float(nearest)) < std::abs(value * unit);
  return subnormal && shrunk ? Half(bits + 1) : nearest;
}

float peak_of(const Group& group) {
  const auto [lowest, highest] = extremes_of(group.x, group.count);
  const float peak = highest > -lowest ? highest : lowest;
  return std::abs(peak) < kNothing ? 0 : peak;
}

// The peak may come to lie at the longer end of the range, or (fewer candidates) at the other one,
// and a little beyond either: cutting the peak often serves all others.
float search_scale(const Group& group, Range range, int candidate_count) {
  const float peak = peak_of(group);
  if (peak == 0) return 0;
  float best_scale = peak / float(range.low), best_gain = 0;
  const auto consider = [&](float inverse) {
    const ScaleSums sums = scale_sums(group, inverse, range);
    const float gain = sums.gain();
    if (!(gain > best_gain)) return;
    best_gain = gain;
    best_scale = sums.xq / sums.qq;
  };
  consider(float(range.low) / peak);
  for (int candidate = 0; candidate < candidate_count; ++candidate) {
    // From 1.4 steps inside the end to 1 step beyond it.
    const float shift = 2.4f * float(candidate) / float(candidate_count) - 1.4f;
    consider((float(range.low) - shift) / peak);
    if (candidate % 2 == 0) consider((float(range.high) + shift) / peak);
  }
  for (int pass = 0; pass < kRefinements; ++pass) consider(1 / best_scale);
  return best_scale;
}

void quantize(const Group& group, float scale, Range range, int8_t* q) {
  const F4 low = splat(float(range.low)), high = splat(float(range.high));
  const F4 factor = splat(scale == 0 ? 0 : 1 / scale);
  for (int i = 0; i < group.count; i += 4) {
    const F4 rounded = round_within(load4(group.x + i) * factor, low, high);
    for (int lane = 0; lane < 4; ++lane) q[i + lane] = int8_t(rounded[lane]);
  }
}

float error_of(const Group& group, float scale, Range range) {
  const F4 low = splat(float(range.low)), high = splat(float(range.high));
  const F4 factor = splat(scale == 0 ? 0 : 1 / scale), step = splat(scale);
  F4 sum = splat(0);
  for (int i = 0; i < group.count; i += 4) {
    const F4 x = load4(group.x + i);
    const F4 error = x - step * round_within(x * factor, low, high);
    sum += load4(group.w + i) * error * error;
  }
  return total(sum);
}

Line search_line(const Group& group, int high, Minimum minimum) {
  auto [lowest, highest] = extremes_of(group.x, group.count);
  if (minimum == Minimum::not_positive) lowest = std::min(lowest, 0.0f);
  if (highest - lowest < kNothing) return {0, lowest};
  const float step = (highest - lowest) / float(high);
  const LineTotals totals = line_totals(group);
  LineFit best{{step, lowest}, INFINITY};
  const auto consider = [&](Line guess) {
    const LineFit fit = refit(group, totals, guess, high, minimum);
    if (fit.error < best.error) best = fit;
  };
  // The ends move inward (or a little outward) by fractions of a step, each by itself.
  for (int lower = 0; lower < kShifts; ++lower) {
    for (int upper = 0; upper < kShifts; ++upper) {
      const float cut_low = 0.3f * float(lower - 1), cut_high = 0.3f * float(upper - 1);
      const float scale = step * (float(high) - cut_low - cut_high) / float(high);
      consider({scale, lowest + cut_low * step});
    }
  }
  for (int pass = 0; pass < kRefinements; ++pass) consider(best.line);
  return best.line;
}

void quantize(const Group& group, Line line, int high, int8_t* q) {
  const F4 limit = splat(float(high)), min = splat(line.min);
  const F4 factor = splat(line.scale == 0 ? 0 : 1 / line.scale);
  for (int i = 0; i < group.count; i += 4) {
    const F4 rounded = round_within((load4(group.x + i) - min) * factor, splat(0), limit);
    for (int lane = 0; lane < 4; ++lane) q[i + lane] = int8_t(rounded[lane]);
  }
}

float error_of(const Group& group, Line line, int high) {
  const F4 limit = splat(float(high)), min = splat(line.min), step = splat(line.scale);
  const F4 factor = splat(line.scale == 0 ? 0 : 1 / line.scale);
  F4 sum = splat(0);
  for (int i = 0; i < group.count; i += 4) {
    const F4 x = load4(group.x + i) - min;
    const F4 error = x - step * round_within(x * factor, splat(0), limit);
    sum += load4(group.w + i) * error * error;
  }
  return total(sum);
}

}  // namespace cairn::quant
