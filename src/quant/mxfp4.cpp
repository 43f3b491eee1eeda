// MXFP4 (OCP Microscaling Formats 1.0): 32 weights of E2M1 with one power of two as a scale. The
// levels here are doubled to be integers, so the scale is 2^(exponent - 128); exponents 0 and 1
// give subnormal f32, which are kept.
#include <algorithm>
#include <cmath>

#include "quant/block.h"
#include "quant/fp4.h"
#include "quant/lanes.h"
#include "quant/search.h"

namespace cairn::quant {
namespace {

struct Block {
  uint8_t exponent;
  uint8_t nibbles[16];
};
static_assert(sizeof(Block) == 17, "on-disk layout fixed by GGUF");

// 2^(exponent - 128). The smallest normal f32 is 2^-126, so 0 and 1 set a bit of the fraction.
float half_power(uint32_t exponent) {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
}

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  set_scale(units[0], half_power(block.exponent));
  unpack_nibbles(block.nibbles, units[0].q);
  for (int8_t& q : units[0].q) q = kFp4Levels[q];
}

// The level nearest to v, of both signs: whole numbers to 4, then 6, 8 and 12.
F4 nearest_level(F4 v) {
  const F4 magnitude = higher_of(v, -v);
  const F4 step = magnitude < splat(4) ? splat(1) : magnitude < splat(8) ? splat(2) : splat(4);
  const F4 level = step * round_within(magnitude / step, splat(0), splat(12) / step);
  return v < splat(0) ? -level : level;
}

float error_of(const Group& group, float scale) {
  const F4 factor = splat(1 / scale), width = splat(scale);
  F4 sum = splat(0);
  for (int i = 0; i < group.count; i += 4) {
    const F4 x = load4(group.x + i);
    const F4 error = x - width * nearest_level(x * factor);
    sum += load4(group.w + i) * error * error;
  }
  return total(sum);
}

int8_t code_of(float level) {
  const int magnitude = int(std::abs(level));
  const int code = magnitude <= 4 ? magnitude : magnitude == 12 ? 7 : magnitude / 2 + 2;
  return int8_t(code | (level < 0 ? 8 : 0));
}

// Of three exponents: the one that brings the peak to 8 … 16 (levels end at 12) and its neighbours.
// 255 is left out: it is NaN in the OCP format.
void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 32, prepared);
  const Group group{prepared.x, prepared.w, 32};
  const int middle =
      std::ilogb(std::max(std::abs(peak_of(group) * prepared.unit), 0x1p-126f)) + 125;
  Block block{};
  float best_error = INFINITY, best_scale = 1;
  for (int exponent = std::max(middle - 1, 0); exponent <= std::min(middle + 1, 254); ++exponent) {
    const float scale = half_power(uint32_t(exponent)) / prepared.unit;
    const float error = error_of(group, scale);
    if (!(error < best_error)) continue;
    best_error = error;
    best_scale = scale;
    block.exponent = uint8_t(exponent);
  }
  int8_t codes[32];
  for (int i = 0; i < 32; i += 4) {
    const F4 level = nearest_level(load4(prepared.x + i) * splat(1 / best_scale));
    for (int lane = 0; lane < 4; ++lane) codes[i + lane] = code_of(level[lane]);
  }
  pack_nibbles(codes, block.nibbles);
  store(block, out);
}

}  // namespace

extern const Type type_mxfp4;
constinit const Type type_mxfp4{.name = "MXFP4",
                                .gguf_id = 39,
                                .block_weights = 32,
                                .block_bytes = sizeof(Block),
                                .halves = false,
                                .offsets = false,
                                .decode = decode_scaled<1, integers>,
                                .integers = integers,
                                .encode = encode,
                                .rms_error_max = 0.1124f};

}  // namespace cairn::quant
