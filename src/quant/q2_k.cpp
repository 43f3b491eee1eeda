// Q2_K: 256 weights in 16 groups of 16; weight = scale * s * q - min * m with 2-bit q and, in one
// byte a group, 4-bit s (low) and m (high). A byte of `pairs` holds weights 32 apart.
#include "quant/block.h"
#include "quant/fit.h"

namespace cairn::quant {
namespace {

struct Block {
  uint8_t groups[16];
  uint8_t pairs[64];
  Half scale;
  Half min;
};
static_assert(sizeof(Block) == 84, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  const float min = to_float(block.min);
  for (int unit = 0; unit < 8; ++unit) {
    const uint8_t* pairs = block.pairs + 32 * (unit / 4);
    for (int i = 0; i < 32; ++i) units[unit].q[i] = int8_t(pairs[i] >> (2 * (unit % 4)) & 3);
    for (int half = 0; half < 2; ++half) {
      const int group = block.groups[2 * unit + half];
      units[unit].scale[half] = scale * float(group & 15);
      units[unit].offset[half] = -(min * float(group >> 4));
    }
  }
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 256, prepared);
  emphasize(prepared, 256, Emphasis::full);
  OffsetFit fit;
  fit_offset(prepared, {.group_count = 16, .q_high = 3, .level_high = 15}, fit);
  Block block{};
  block.scale = fit.scale;
  block.min = fit.min;
  for (int group = 0; group < 16; ++group) {
    block.groups[group] = uint8_t(fit.s[group] | fit.m[group] << 4);
  }
  for (int i = 0; i < 256; ++i) {
    block.pairs[32 * (i / 128) + i % 32] |= uint8_t(fit.q[i] << (2 * (i / 32 % 4)));
  }
  store(block, out);
}

}  // namespace

extern const Type type_q2_k;
constinit const Type type_q2_k{.name = "Q2_K",
                               .gguf_id = 10,
                               .block_weights = 256,
                               .block_bytes = sizeof(Block),
                               .halves = true,
                               .offsets = true,
                               .decode = decode_offset<8, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.2929f};

}  // namespace cairn::quant
