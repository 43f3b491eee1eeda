// Nearest levels by table: all borders between levels are multiples of one half, so half steps
// decide.
#include "quant/iq4_levels.h"

#include <array>
#include <cmath>

#include "quant/lanes.h"

namespace cairn::quant {
namespace {

// Entry i holds the level nearest to all of [i / 2 - 128, i / 2 - 127.5).
constexpr std::array<int8_t, 512> kNearest = [] {
  std::array<int8_t, 512> nearest{};
  for (int i = 0; i < 512; ++i) {
    const int quarters = 2 * i - 512 + 1;  // The cell's centre, in quarters.
    int best = 0;
    for (int code = 1; code < 16; ++code) {
      const int distance = quarters - 4 * kIq4Levels[code];
      const int best_distance = quarters - 4 * kIq4Levels[best];
      if (distance * distance < best_distance * best_distance) best = code;
    }
    nearest[size_t(i)] = int8_t(best);
  }
  return nearest;
}();

void nearest_codes(F4 x, F4 factor, int8_t* codes) {
  const F4 v = lower_of(higher_of(x * factor, splat(-127)), splat(113));
  const F4 cell = (v + splat(128)) * splat(2);
  for (int lane = 0; lane < 4; ++lane) codes[lane] = kNearest[size_t(cell[lane])];
}

F4 levels_of(const int8_t* codes) {
  return F4{float(kIq4Levels[codes[0]]), float(kIq4Levels[codes[1]]), float(kIq4Levels[codes[2]]),
            float(kIq4Levels[codes[3]])};
}

struct LevelSums {
  float xq, qq;
};

LevelSums level_sums(const Group& group, float inverse) {
  F4 xq = splat(0), qq = splat(0);
  for (int i = 0; i < group.count; i += 4) {
    const F4 x = load4(group.x + i);
    int8_t codes[4];
    nearest_codes(x, splat(inverse), codes);
    const F4 q = levels_of(codes);
    const F4 wq = load4(group.w + i) * q;
    xq += wq * x;
    qq += wq * q;
  }
  return {total(xq), total(qq)};
}

}  // namespace

// The peak is tried at either end of the levels, and up to an eighth inside and beyond it.
float search_iq4_scale(const Group& group) {
  const float peak = peak_of(group);
  if (peak == 0) return 0;
  float best_scale = peak / -127, best_gain = 0;
  const auto consider = [&](float inverse) {
    const LevelSums sums = level_sums(group, inverse);
    const float gain = sums.xq * sums.xq / sums.qq;  // No level is 0, so qq > 0.
    if (!(gain > best_gain)) return;
    best_gain = gain;
    best_scale = sums.xq / sums.qq;
  };
  for (int candidate = 0; candidate < 12; ++candidate) {
    const float stretch = 0.85f + 0.025f * float(candidate);
    consider(-127 * stretch / peak);
    consider(113 * stretch / peak);
  }
  for (int pass = 0; pass < 2; ++pass) consider(1 / best_scale);
  return best_scale;
}

void quantize_iq4(const Group& group, float scale, int8_t* codes) {
  const F4 factor = splat(scale == 0 ? 0 : 1 / scale);
  for (int i = 0; i < group.count; i += 4) nearest_codes(load4(group.x + i), factor, codes + i);
}

float error_of_iq4(const Group& group, float scale) {
  const F4 factor = splat(scale == 0 ? 0 : 1 / scale), step = splat(scale);
  F4 sum = splat(0);
  for (int i = 0; i < group.count; i += 4) {
    const F4 x = load4(group.x + i);
    int8_t codes[4];
    nearest_codes(x, factor, codes);
    const F4 error = x - step * levels_of(codes);
    sum += load4(group.w + i) * error * error;
  }
  return total(sum);
}

}  // namespace cairn::quant
