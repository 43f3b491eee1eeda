// IQ1_M: 256 weights in 16 groups of 16; weight = scale * (2 * s + 1) * (g ± 1/8), g as in IQ1_S.
// For each 8 weights a nibble of `high`: 3 upper bits of the grid index, sign of the eighth. Each
// of the four words has four 3-bit s; their top nibbles, last word highest, are the f16 scale.
#include "quant/block.h"
#include "quant/grids/grid.h"
#include "quant/grids/grid_fit.h"

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

constexpr GridFormat kFormat{.grid = kGridIq1,
                             .entry_count = 2048,
                             .entry_weights = 8,
                             .levels = {-8, 0, 8},
                             .signs = GridSigns::shifted,
                             .cell_weights = 8,
                             .group_count = 16,
                             .s_high = 7,
                             .stored_factor = 8};

void encode(const float* weights, const float* importance, std::byte* out) {
  GridFit fit;
  fit_grid(weights, importance, kFormat, fit);
  Block block{};
  for (int part = 0; part < 32; ++part) {
    const uint32_t index = fit.index[part];
    const uint32_t nibble = index >> 8 | uint32_t(fit.is_low[part]) << 3;
    block.low[part] = uint8_t(index & 255);
    block.high[part / 2] |= uint8_t(nibble << (4 * (part % 2)));
  }
  for (int word = 0; word < 4; ++word) {
    uint32_t bits = (uint32_t(fit.scale) >> (4 * word) & 15) << 12;
    for (int group = 0; group < 4; ++group)
      bits |= uint32_t(fit.s[4 * word + group]) << (3 * group);
    store_u16(bits, block.words + 2 * word);
  }
  store(block, out);
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
                                .encode = encode,
                                .rms_error_max = 0.4709f};

}  // namespace cairn::quant
