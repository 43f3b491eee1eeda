// A super-block is fitted in rounds: with the f16 numbers given, each group takes the integers near
// its own best scale that leave the least error; then the f16 numbers follow from all groups by
// least squares. A round that does not help is dropped.
#include "quant/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "quant/iq4_levels.h"

namespace cairn::quant {
namespace {

constexpr int kRounds = 2;

Group group_of(const Prepared& block, int group, int count) {
  return {block.x + group * count, block.w + group * count, count};
}

int nearest(float value, int low, int high) {
  return int(std::lrint(std::clamp(value, float(low), float(high))));
}

// What a group's codes stand for: the numbers themselves, or the uneven levels of IQ4.
struct EvenLevels {
  Range range;
  float search(const Group& group) const { return search_scale(group, range, 10); }
  float error(const Group& group, float scale) const { return error_of(group, scale, range); }
  void encode(const Group& group, float scale, int8_t* q) const {
    quantize(group, scale, range, q);
  }
  int level(int8_t code) const { return code; }
};

struct Iq4Codes {
  float search(const Group& group) const { return search_iq4_scale(group); }
  float error(const Group& group, float scale) const { return error_of_iq4(group, scale); }
  void encode(const Group& group, float scale, int8_t* q) const { quantize_iq4(group, scale, q); }
  int level(int8_t code) const { return kIq4Levels[code]; }
};

// The integer scale of one group that leaves the least error.
struct ScaleChoice {
  int s;
  float error;
};

template <class Levels>
ScaleChoice choose_scale(const Group& group, float wanted, float step, const Levels& levels,
                         Range s_range) {
  const int middle = nearest(wanted / step, s_range.low, s_range.high);
  ScaleChoice best{0, INFINITY};
  for (int s = middle - 1; s <= middle + 1; ++s) {
    if (s < s_range.low || s > s_range.high) continue;
    const float error = levels.error(group, step * float(s));
    if (error < best.error) best = {s, error};
  }
  return best;
}

// Writes s and q of every group for the scale in `out`; returns the error of all.
template <class Levels>
double choose_scales(const Prepared& block, const float* wanted, const Levels& levels,
                     const ScaledFormat& format, ScaledFit& out) {
  const float step = to_float(out.scale) / block.unit;
  const int count = 256 / format.group_count;
  double error = 0;
  for (int index = 0; index < format.group_count; ++index) {
    const Group group = group_of(block, index, count);
    const ScaleChoice choice = choose_scale(group, wanted[index], step, levels, format.s_range);
    error += double(choice.error);
    out.s[index] = int8_t(choice.s);
    levels.encode(group, step * float(choice.s), out.q + count * index);
  }
  return error;
}

// The scale that serves the integers of `fit` best.
template <class Levels>
float refit_scale(const Prepared& block, const Levels& levels, int group_count,
                  const ScaledFit& fit) {
  double xq = 0, qq = 0;
  for (int i = 0; i < 256; ++i) {
    const double product = fit.s[i / (256 / group_count)] * levels.level(fit.q[i]);
    xq += double(block.w[i]) * double(block.x[i]) * product;
    qq += double(block.w[i]) * product * product;
  }
  return qq > 0 ? float(xq / qq) : 0;
}

template <class Levels>
void fit_levels(const Prepared& block, const Levels& levels, const ScaledFormat& format,
                ScaledFit& out) {
  float wanted[16];
  float peak = 0;
  for (int index = 0; index < format.group_count; ++index) {
    wanted[index] = levels.search(group_of(block, index, 256 / format.group_count));
    if (std::abs(wanted[index]) > std::abs(peak)) peak = wanted[index];
  }
  out = {};
  double best_error = INFINITY;
  float scale = peak / float(format.s_range.low);
  for (int round = 0; round < kRounds && scale != 0; ++round) {
    ScaledFit trial{};
    trial.scale = stored_scale(scale, block.unit);
    if (to_float(trial.scale) == 0) break;
    const double error = choose_scales(block, wanted, levels, format, trial);
    if (!(error < best_error)) break;
    best_error = error;
    out = trial;
    scale = refit_scale(block, levels, format.group_count, trial);
  }
}

struct OffsetChoice {
  int s, m;
  float error;
};

OffsetChoice choose_offset(const Group& group, Line wanted, Line step, const OffsetFormat& format) {
  const int middle_s =
      step.scale > 0 ? nearest(wanted.scale / step.scale, 0, format.level_high) : 0;
  const int middle_m = step.min > 0 ? nearest(-wanted.min / step.min, 0, format.level_high) : 0;
  OffsetChoice best{0, 0, INFINITY};
  for (int s = std::max(middle_s - 1, 0); s <= std::min(middle_s + 1, format.level_high); ++s) {
    for (int m = std::max(middle_m - 1, 0); m <= std::min(middle_m + 1, format.level_high); ++m) {
      const Line line{step.scale * float(s), -(step.min * float(m))};
      const float error = error_of(group, line, format.q_high);
      if (error < best.error) best = {s, m, error};
    }
  }
  return best;
}

double choose_offsets(const Prepared& block, const Line* wanted, const OffsetFormat& format,
                      OffsetFit& out) {
  const Line step{to_float(out.scale) / block.unit, to_float(out.min) / block.unit};
  const int count = 256 / format.group_count;
  double error = 0;
  for (int index = 0; index < format.group_count; ++index) {
    const Group group = group_of(block, index, count);
    const OffsetChoice choice = choose_offset(group, wanted[index], step, format);
    error += double(choice.error);
    out.s[index] = uint8_t(choice.s);
    out.m[index] = uint8_t(choice.m);
    const Line line{step.scale * float(choice.s), -(step.min * float(choice.m))};
    quantize(group, line, format.q_high, out.q + count * index);
  }
  return error;
}

// The two f16 numbers that serve the integers of `fit` best; {0, 0} where they do not determine
// both.
Line refit_offsets(const Prepared& block, const OffsetFormat& format, const OffsetFit& fit) {
  double qq = 0, qm = 0, mm = 0, xq = 0, xm = 0;
  const int count = 256 / format.group_count;
  for (int i = 0; i < 256; ++i) {
    const double level = fit.s[i / count] * fit.q[i], m = fit.m[i / count];
    const double w = double(block.w[i]), x = double(block.x[i]);
    qq += w * level * level;
    qm += w * level * m;
    mm += w * m * m;
    xq += w * x * level;
    xm += w * x * m;
  }
  const double determinant = qq * mm - qm * qm;
  if (!(determinant > 1e-9 * qq * mm)) return {0, 0};
  return {float((xq * mm - qm * xm) / determinant), float((qm * xq - qq * xm) / determinant)};
}

// The largest f16 that is at most value * unit (the smallest finite one if there is none).
Half stored_floor(float value, float unit) {
  const Half nearest = stored_min(value, unit);
  const uint32_t bits = uint32_t(nearest);
  if (to_float(nearest) <= value * unit || bits == 0xfbffu) return nearest;
  if (bits == 0) return Half(0x8001u);
  return Half(bits & 0x8000u ? bits + 1 : bits - 1);
}

}  // namespace

float fit_scale(const Prepared& block, Range range, int candidate_count, Half& stored) {
  const Group group{block.x, block.w, 32};
  const Half found = stored_scale(search_scale(group, range, candidate_count), block.unit);
  const Half plain = stored_scale(peak_of(group) / float(range.low), block.unit);
  const float found_scale = to_float(found) / block.unit,
              plain_scale = to_float(plain) / block.unit;
  const bool better = error_of(group, found_scale, range) <= error_of(group, plain_scale, range);
  stored = better ? found : plain;
  return better ? found_scale : plain_scale;
}

// The search runs on centred weights, since its sums would cancel where the mean is far from 0. Its
// result competes with two simple lines, which win where the rounding of the minimum to f16
// matters: from the lowest weight to the highest, and from the f16 below the lowest.
void fit_line(const Prepared& block, int q_high, LineBlock& out) {
  const Group group{block.x, block.w, 32};
  const auto [low, high] = std::minmax_element(block.x, block.x + 32);
  const float lowest = *low, highest = *high;
  const float centre = lowest + (highest - lowest) / 2;
  Prepared centred;
  for (int i = 0; i < 32; ++i) centred.x[i] = block.x[i] - centre;
  const Line found = search_line({centred.x, block.w, 32}, q_high, Minimum::any);
  const Half floor = stored_floor(lowest, block.unit);
  const float span = highest - lowest;
  const int floor_steps = span > 0 ? q_high : 1;  // A constant is one step above the floor.
  const struct {
    float scale;
    Half min;
  } trials[] = {{found.scale, stored_min(found.min + centre, block.unit)},
                {span / float(q_high), stored_min(lowest, block.unit)},
                {(highest - to_float(floor) / block.unit) / float(floor_steps), floor}};
  // The least bit of an f16 is 2^-11 of its value, and 2^-24 at the bottom.
  const float step = found.scale * block.unit;
  const bool coarse = step < 0x1p-14f || step < std::abs(lowest * block.unit) * 0x1p-8f;
  float best_error = INFINITY;
  Line best{0, 0};
  for (const auto& trial : trials) {
    const Half scale = stored_scale(trial.scale, block.unit);
    const Line line{to_float(scale) / block.unit, to_float(trial.min) / block.unit};
    const float error = error_of(group, line, q_high);
    if (!(error < best_error)) continue;
    best_error = error;
    best = line;
    out.scale = scale;
    out.min = trial.min;
    if (!coarse) break;
  }
  quantize(group, best, q_high, out.q);
}

void fit_scaled(const Prepared& block, const ScaledFormat& format, ScaledFit& out) {
  fit_levels(block, EvenLevels{format.q_range}, format, out);
}

void fit_iq4(const Prepared& block, ScaledFit& out) {
  fit_levels(block, Iq4Codes{}, {.group_count = 8, .q_range = {0, 15}, .s_range = {-32, 31}}, out);
}

// Weights with q != 0 are the largest ones, however many; given them, the scale is their mean. So
// all cuts through the sorted magnitudes are tried.
void fit_ternary(const Prepared& block, Half& scale, int8_t* q) {
  std::array<int, 256> order;
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const float size_a = std::abs(block.x[a]), size_b = std::abs(block.x[b]);
    return size_a != size_b ? size_a > size_b : a < b;
  });
  double sum = 0, weight = 0, best_gain = 0, best_scale = 0;
  for (const int i : order) {
    sum += double(block.w[i]) * double(std::abs(block.x[i]));
    weight += double(block.w[i]);
    if (!(sum * sum > best_gain * weight)) continue;
    best_gain = sum * sum / weight;
    best_scale = sum / weight;
  }
  scale = stored_scale(float(best_scale), block.unit);
  quantize({block.x, block.w, 256}, to_float(scale) / block.unit, {-1, 1}, q);
}

void fit_offset(const Prepared& block, const OffsetFormat& format, OffsetFit& out) {
  Line wanted[16];
  Line step{0, 0};
  const int count = 256 / format.group_count;
  for (int index = 0; index < format.group_count; ++index) {
    const Group group = group_of(block, index, count);
    wanted[index] = search_line(group, format.q_high, Minimum::not_positive);
    step.scale = std::max(step.scale, wanted[index].scale / float(format.level_high));
    step.min = std::max(step.min, -wanted[index].min / float(format.level_high));
  }
  out = {};
  double best_error = INFINITY;
  for (int round = 0; round < kRounds && (step.scale > 0 || step.min > 0); ++round) {
    OffsetFit trial;
    trial.scale = stored_scale(step.scale, block.unit);
    trial.min = stored_scale(step.min, block.unit);
    const double error = choose_offsets(block, wanted, format, trial);
    if (!(error < best_error)) break;
    best_error = error;
    out = trial;
    step = refit_offsets(block, format, trial);
    if (step.scale < 0 || step.min < 0) break;
  }
}

}  // namespace cairn::quant
