// IQ2_S: 256 weights in 16 groups of 16; weight = scale * (s + 1/2) / 4 * sign * magnitude. A grid
// index has 8 bits in `low` and 2 in `high`; all 8 sign bits are stored. A byte of `groups` holds
// two s.
#include "quant/block.h"
#include "quant/grids/grid.h"
#include "quant/grids/grid_fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  uint8_t low[32];
  uint8_t signs[32];
  uint8_t high[8];
  uint8_t groups[8];
};
static_assert(sizeof(Block) == 82, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) {
    units[unit].scale[0] = scale * (0.5f + float(block.groups[unit] & 15)) * 0.25f;
    units[unit].scale[1] = scale * (0.5f + float(block.groups[unit] >> 4)) * 0.25f;
    units[unit].offset[0] = units[unit].offset[1] = 0;
    for (int part = 0; part < 4; ++part) {
      const int high = block.high[unit] >> (2 * part) & 3;
      const int index = block.low[4 * unit + part] | high << 8;
      expand_iq2(kGridIq2S[index], block.signs[4 * unit + part], units[unit].q + 8 * part);
    }
  }
}

constexpr GridFormat kFormat{.grid = kGridIq2S,
                             .entry_count = 1024,
                             .entry_weights = 8,
                             .levels = {8, 25, 43},
                             .signs = GridSigns::stored,
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
    block.low[part] = uint8_t(fit.index[part] & 255);
    block.high[part / 4] |= uint8_t((fit.index[part] >> 8) << (2 * (part % 4)));
    block.signs[part] = fit.signs[part];
  }
  pack_scales(fit, block.groups);
  store(block, out);
}

}  // namespace

extern const Type type_iq2_s;
constinit const Type type_iq2_s{.name = "IQ2_S",
                                .gguf_id = 22,
                                .block_weights = 256,
                                .block_bytes = sizeof(Block),
                                .halves = true,
                                .offsets = false,
                                .decode = decode_scaled<8, integers>,
                                .integers = integers,
                                .encode = encode,
                                .rms_error_max = 0.2515f};

}  // namespace cairn::quant
