// Q3_K: 256 weights in 16 groups of 16; weight = scale * (s - 32) * q with 6-bit s and q in -4 … 3:
// two bits in `pairs` (weights 32 apart share a byte), and 4 less where the bit of `high` is clear.
// Low nibbles of s fill bytes 0-7 of `groups` (0-7 low, 8-15 high), upper two bits bytes 8-11.
#include "quant/block.h"
#include "quant/fit.h"

namespace cairn::quant {
namespace {

struct Block {
  uint8_t high[32];
  uint8_t pairs[64];
  uint8_t groups[12];
  Half scale;
};
static_assert(sizeof(Block) == 110, "on-disk layout fixed by GGUF");

int group_scale(const uint8_t* groups, int group) {
  const int low = groups[group % 8] >> (4 * (group / 8)) & 15;
  const int high = groups[8 + group % 4] >> (2 * (group / 4)) & 3;
  return (low | high << 4) - 32;
}

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) {
    const uint8_t* pairs = block.pairs + 32 * (unit / 4);
    for (int i = 0; i < 32; ++i) {
      const int low = pairs[i] >> (2 * (unit % 4)) & 3;
      units[unit].q[i] = int8_t(low - (block.high[i] >> unit & 1 ? 0 : 4));
    }
    units[unit].scale[0] = scale * float(group_scale(block.groups, 2 * unit));
    units[unit].scale[1] = scale * float(group_scale(block.groups, 2 * unit + 1));
    units[unit].offset[0] = units[unit].offset[1] = 0;
  }
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 256, prepared);
  emphasize(prepared, 256, Emphasis::strong);
  ScaledFit fit;
  fit_scaled(prepared, {.group_count = 16, .q_range = {-4, 3}, .s_range = {-32, 31}}, fit);
  Block block{};
  block.scale = fit.scale;
  for (int group = 0; group < 16; ++group) {
    const int code = fit.s[group] + 32;
    block.groups[group % 8] |= uint8_t((code & 15) << (4 * (group / 8)));
    block.groups[8 + group % 4] |= uint8_t((code >> 4) << (2 * (group / 4)));
  }
  for (int i = 0; i < 256; ++i) {
    const int code = fit.q[i] + 4;
    block.pairs[32 * (i / 128) + i % 32] |= uint8_t((code & 3) << (2 * (i / 32 % 4)));
    block.high[i % 32] |= uint8_t((code >> 2) << (i / 32));
  }
  store(block, out);
}

}  // namespace

extern const Type type_q3_k;
constinit const Type type_q3_k{.name = "Q3_K",
                               .gguf_id = 11,
                               .block_weights = 256,
                               .block_bytes = sizeof(Block),
                               .halves = true,
                               .offsets = false,
                               .decode = decode_scaled<8, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.1493f};

}  // namespace cairn::quant
