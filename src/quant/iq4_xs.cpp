// IQ4_XS: 256 weights in 8 groups of 32; weight = scale * (s - 32) * level[q] with the levels of
// IQ4_NL. The 6-bit s has its low nibbles in scales_low, two upper bits in scales_high.
#include "quant/block.h"
#include "quant/fit.h"
#include "quant/iq4_levels.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  uint8_t scales_high[2];
  uint8_t scales_low[4];
  uint8_t nibbles[128];
};
static_assert(sizeof(Block) == 136, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  const uint32_t scales_high = load_u16(block.scales_high);
  for (int unit = 0; unit < 8; ++unit) {
    const int low = block.scales_low[unit / 2] >> (4 * (unit % 2)) & 15;
    const int high = int(scales_high >> (2 * unit) & 3);
    set_scale(units[unit], scale * float((low | high << 4) - 32));
    unpack_nibbles(block.nibbles + 16 * unit, units[unit].q);
    for (int8_t& q : units[unit].q) q = kIq4Levels[q];
  }
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 256, prepared);
  ScaledFit fit;
  fit_iq4(prepared, fit);
  Block block{};
  block.scale = fit.scale;
  uint32_t scales_high = 0;
  for (int unit = 0; unit < 8; ++unit) {
    const uint32_t code = uint32_t(fit.s[unit] + 32);
    block.scales_low[unit / 2] |= uint8_t((code & 15) << (4 * (unit % 2)));
    scales_high |= code >> 4 << (2 * unit);
    pack_nibbles(fit.q + 32 * unit, block.nibbles + 16 * unit);
  }
  block.scales_high[0] = uint8_t(scales_high & 255);
  block.scales_high[1] = uint8_t(scales_high >> 8);
  store(block, out);
}

}  // namespace

extern const Type type_iq4_xs;
constinit const Type type_iq4_xs{.name = "IQ4_XS",
                                 .gguf_id = 23,
                                 .block_weights = 256,
                                 .block_bytes = sizeof(Block),
                                 .halves = false,
                                 .offsets = false,
                                 .decode = decode_scaled<8, integers>,
                                 .integers = integers,
                                 .encode = encode,
                                 .rms_error_max = 0.0743f};

}  // namespace cairn::quant
