// IQ2_XS: 256 weights in 16 groups of 16; weight = scale * (s + 1/2) / 4 * sign * magnitude. Each 8
// weights are a word: 9 bits grid index, 7 sign bits. A byte of `groups` holds two s, low first.
#include "quant/block.h"
#include "quant/grids/grid.h"
#include "quant/grids/grid_fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  uint8_t words[64];
  uint8_t groups[8];
};
static_assert(sizeof(Block) == 74, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) {
    units[unit].scale[0] = scale * (0.5f + float(block.groups[unit] & 15)) * 0.25f;
    units[unit].scale[1] = scale * (0.5f + float(block.groups[unit] >> 4)) * 0.25f;
    units[unit].offset[0] = units[unit].offset[1] = 0;
    for (int part = 0; part < 4; ++part) {
      const uint32_t word = load_u16(block.words + 8 * unit + 2 * part);
      expand_iq2(kGridIq2Xs[word & 511], even_signs(word >> 9), units[unit].q + 8 * part);
    }
  }
}

constexpr GridFormat kFormat{.grid = kGridIq2Xs,
                             .entry_count = 512,
                             .entry_weights = 8,
                             .levels = {8, 25, 43},
                             .signs = GridSigns::even,
                             .cell_weights = 8,
                             .group_count = 16,
                             .s_high = 15,
                             .stored_factor = 8};

void encode(const float* weights, const float* importance, std::byte* out) {
  GridFit fit;
  fit_grid(weights, importance, kFormat, fit);
  Block block{};
  block.scale = fit.scale;
  for (int part = 0; part < 32; ++part) {
    store_u16(fit.index[part] | uint32_t(fit.signs[part] & 127) << 9, block.words + 2 * part);
  }
  pack_scales(fit, block.groups);
  store(block, out);
}

}  // namespace

extern const Type type_iq2_xs;
constinit const Type type_iq2_xs{.name = "IQ2_XS",
                                 .gguf_id = 17,
                                 .block_weights = 256,
                                 .block_bytes = sizeof(Block),
                                 .halves = true,
                                 .offsets = false,
                                 .decode = decode_scaled<8, integers>,
                                 .integers = integers,
                                 .encode = encode,
                                 .rms_error_max = 0.3022f};

}  // namespace cairn::quant
