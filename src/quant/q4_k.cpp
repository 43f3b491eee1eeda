// Q4_K: 256 weights in 8 groups of 32; weight = scale * s * q - min * m with 6-bit s and m
// (k_scales.h) and 4-bit q. Groups 2c and 2c + 1 are the low and the high nibbles of the c-th 32
// bytes.
#include "quant/block.h"
#include "quant/fit.h"
#include "quant/k_scales.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  Half min;
  uint8_t groups[12];
  uint8_t nibbles[128];
};
static_assert(sizeof(Block) == 144, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  const float min = to_float(block.min);
  const KScales groups = unpack_k_scales(block.groups);
  for (int unit = 0; unit < 8; ++unit) {
    const uint8_t* nibbles = block.nibbles + 32 * (unit / 2);
    for (int i = 0; i < 32; ++i) {
      units[unit].q[i] = int8_t(nibbles[i] >> (4 * (unit % 2)) & 15);
    }
    set_scale(units[unit], scale * float(groups.scale[unit]), -(min * float(groups.min[unit])));
  }
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 256, prepared);
  OffsetFit fit;
  fit_offset(prepared, {.group_count = 8, .q_high = 15, .level_high = 63}, fit);
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
  }
  store(block, out);
}

}  // namespace

extern const Type type_q4_k;
constinit const Type type_q4_k{.name = "Q4_K",
                               .gguf_id = 12,
                               .block_weights = 256,
                               .block_bytes = sizeof(Block),
                               .halves = false,
                               .offsets = true,
                               .decode = decode_offset<8, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.0705f};

}  // namespace cairn::quant
