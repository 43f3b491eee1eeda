// What the encoders of MXFP4 and NVFP4 share: the nearest levels of E2M1 (doubled, as in fp4.h),
// their codes and the error that they leave. Pure.
#pragma once

#include <cmath>

#include "quant/lanes.h"
#include "quant/search.h"

namespace cairn::quant {

// The level nearest to v, of both signs: whole numbers to 4, then 6, 8 and 12.
inline F4 nearest_fp4(F4 v) {
  const F4 magnitude = higher_of(v, -v);
  const F4 step = magnitude < splat(4) ? splat(1) : magnitude < splat(8) ? splat(2) : splat(4);
  const F4 level = step * round_within(magnitude / step, splat(0), splat(12) / step);
  return v < splat(0) ? -level : level;
}

// REQUIRES: scale > 0.
inline float error_of_fp4(const Group& group, float scale) {
  const F4 factor = splat(1 / scale), width = splat(scale);
  F4 sum = splat(0);
  for (int i = 0; i < group.count; i += 4) {
    const F4 x = load4(group.x + i);
    const F4 error = x - width * nearest_fp4(x * factor);
    sum += load4(group.w + i) * error * error;
  }
  return total(sum);
}

inline int8_t fp4_code(float level) {
  const int magnitude = int(std::abs(level));
  const int code = magnitude <= 4 ? magnitude : magnitude == 12 ? 7 : magnitude / 2 + 2;
  return int8_t(code | (level < 0 ? 8 : 0));
}

inline void quantize_fp4(const Group& group, float scale, int8_t* codes) {
  const F4 factor = splat(1 / scale);
  for (int i = 0; i < group.count; i += 4) {
    const F4 level = nearest_fp4(load4(group.x + i) * factor);
    for (int lane = 0; lane < 4; ++lane) codes[i + lane] = fp4_code(level[lane]);
  }
}

}  // namespace cairn::quant
