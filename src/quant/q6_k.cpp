// Q6_K: 256 weights in 16 groups of 16; weight = scale * s * (q - 32) with signed bytes s and 6-bit
// q. In each half of 128 weights, 32 at a time: nibbles from bytes 0-31 low, 32-63 low, 0-31 high,
// 32-63 high of `nibbles`; upper bits from 32 bytes of `high`, two bits at a time.
#include "quant/block.h"
#include "quant/fit.h"

namespace cairn::quant {
namespace {

struct Block {
  uint8_t nibbles[128];
  uint8_t high[64];
  int8_t groups[16];
  Half scale;
};
static_assert(sizeof(Block) == 210, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) {
    const int quarter = unit % 4;
    const uint8_t* nibbles = block.nibbles + 64 * (unit / 4) + 32 * (quarter % 2);
    const uint8_t* high = block.high + 32 * (unit / 4);
    for (int i = 0; i < 32; ++i) {
      const int low = nibbles[i] >> (4 * (quarter / 2)) & 15;
      units[unit].q[i] = int8_t((low | (high[i] >> (2 * quarter) & 3) << 4) - 32);
    }
    units[unit].scale[0] = scale * float(block.groups[2 * unit]);
    units[unit].scale[1] = scale * float(block.groups[2 * unit + 1]);
    units[unit].offset[0] = units[unit].offset[1] = 0;
  }
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 256, prepared);
  ScaledFit fit;
  fit_scaled(prepared, {.group_count = 16, .q_range = {-32, 31}, .s_range = {-128, 127}}, fit);
  Block block{};
  block.scale = fit.scale;
  std::memcpy(block.groups, fit.s, sizeof block.groups);
  for (int i = 0; i < 256; ++i) {
    const int code = fit.q[i] + 32;
    const int half = i / 128, quarter = i / 32 % 4;
    const int nibble = 64 * half + 32 * (quarter % 2) + i % 32;
    block.nibbles[nibble] |= uint8_t((code & 15) << (4 * (quarter / 2)));
    block.high[32 * half + i % 32] |= uint8_t((code >> 4) << (2 * quarter));
  }
  store(block, out);
}

}  // namespace

extern const Type type_q6_k;
constinit const Type type_q6_k{.name = "Q6_K",
                               .gguf_id = 14,
                               .block_weights = 256,
                               .block_bytes = sizeof(Block),
                               .halves = true,
                               .offsets = false,
                               .decode = decode_scaled<8, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.0169f};

}  // namespace cairn::quant
