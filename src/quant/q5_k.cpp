// Q5_K: 256 weights in 8 groups of 32; weight = scale * s * q - min * m with 6-bit s and m
// (k_scales.h) and 5-bit q. Groups 2c and 2c + 1 are the low and the high nibbles of the c-th 32
// bytes; bit g of high[i] is the fifth bit of weight i in group g.
#include "quant/block.h"
#include "quant/fit.h"
#include "quant/k_scales.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  Half min;
  uint8_t groups[12];
  uint8_t high[32];
  uint8_t nibbles[128];
};
static_assert(sizeof(Block) == 176, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  const float min = to_float(block.min);
  const KScales groups = unpack_k_scales(block.groups);
  for (int unit = 0; unit < 8; ++unit) {
    const uint8_t* nibbles = block.nibbles + 32 * (unit / 2);
    for (int i = 0; i < 32; ++i) {
      const int low = nibbles[i] >> (4 * (unit % 2)) & 15;
      units[unit].q[i] = int8_t(low | (block.high[i] >> unit & 1) << 4);
    }
    set_scale(units[unit], scale * float(groups.scale[unit]), -(min * float(groups.min[unit])));
  }
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 256, prepared);
  OffsetFit fit;
  fit_offset(prepared, {.group_count = 8, .q_high = 31, .level_high = 63}, fit);
  Block block{};
  block.scale = fit.scale;
  block.min = fit.min;
  KScales groups;
  std::memcpy(groups.scale, fit.s, sizeof groups.scale);
  std::memcpy(groups.min, fit.m, sizeof groups.min);
  pack_k_scales(groups, block.groups);
  for (int i = 0; i < 256; ++i) {
    const int unit = i / 32;
    block.nibbles[32 * (unit / 2) + i % 32] |= uint8_t((fit.q[i] & 15) << (4 * (unit % 2)));
    block.high[i % 32] |= uint8_t((fit.q[i] >> 4) << unit);
  }
  store(block, out);
}

}  // namespace

extern const Type type_q5_k;
constinit const Type type_q5_k{.name = "Q5_K",
                               .gguf_id = 13,
                               .block_weights = 256,
                               .block_bytes = sizeof(Block),
                               .halves = false,
                               .offsets = true,
                               .decode = decode_offset<8, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.0349f};

}  // namespace cairn::quant
