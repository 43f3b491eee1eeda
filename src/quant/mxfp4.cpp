// MXFP4 (OCP Microscaling Formats 1.0): 32 weights of E2M1 with one power of two as a scale. The
// levels here are doubled to be integers, so the scale is 2^(exponent - 128); exponents 0 and 1
// give subnormal f32, which are kept.
#include <algorithm>
#include <cmath>

#include "quant/block.h"
#include "quant/fp4.h"
#include "quant/fp4_levels.h"
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
    const float error = error_of_fp4(group, scale);
    if (!(error < best_error)) continue;
    best_error = error;
    best_scale = scale;
    block.exponent = uint8_t(exponent);
  }
  int8_t codes[32];
  quantize_fp4(group, best_scale, codes);
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
