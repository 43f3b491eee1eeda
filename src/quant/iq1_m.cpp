// IQ1_M: 256 weights in 16 groups of 16; weight = scale * (2 * s + 1) * (g ± 1/8), g as in IQ1_S.
// For each 8 weights a nibble of `high`: 3 upper bits of the grid index, sign of the eighth. Each
// of the four words has four 3-bit s; their top nibbles, last word highest, are the f16 scale.
#include "quant/block.h"
#include "quant/grid.h"

namespace cairn::quant {
namespace {

struct Block {
  uint8_t low[32];
  uint8_t high[16];
  uint8_t words[8];
};
static_assert(sizeof(Block) == 56, "on-disk layout fixed by GGUF");

float block_scale(const uint8_t* words) {
  uint32_t bits = 0;
  for (int word = 0; word < 4; ++word) bits |= load_u16(words + 2 * word) >> 12 << (4 * word);
  return to_float(Half(bits));
}

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = block_scale(block.words);
  for (int unit = 0; unit < 8; ++unit) {
    const uint32_t word = load_u16(block.words + 2 * (unit / 2)) >> (6 * (unit % 2));
    units[unit].scale[0] = scale * float(2 * (word & 7) + 1) * 0.125f;
    units[unit].scale[1] = scale * float(2 * (word >> 3 & 7) + 1) * 0.125f;
    units[unit].offset[0] = units[unit].offset[1] = 0;
    for (int part = 0; part < 4; ++part) {
      const uint32_t nibble = uint32_t(block.high[2 * unit + part / 2]) >> (4 * (part % 2)) & 15;
      const uint32_t index = block.low[4 * unit + part] | (nibble & 7) << 8;
      expand_iq1(kGridIq1[index], nibble >> 3 != 0, units[unit].q + 8 * part);
    }
  }
}

}  // namespace

extern const Type type_iq1_m;
constinit const Type type_iq1_m{.name = "IQ1_M",
                                .gguf_id = 29,
                                .block_weights = 256,
                                .block_bytes = sizeof(Block),
                                .halves = true,
                                .offsets = false,
                                .decode = decode_scaled<8, integers>,
                                .integers = integers,
                                .encode = nullptr,
                                .rms_error_max = 0};

}  // namespace cairn::quant
