// IQ2_XXS: 256 weights in 8 groups of 32; weight = scale * (s + 1/2) / 4 * sign * magnitude. A
// group is four grid indices and a word: four times 7 sign bits, 4-bit s on top.
#include "quant/block.h"
#include "quant/grids/grid.h"
#include "quant/grids/grid_fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  uint8_t groups[8][8];
};
static_assert(sizeof(Block) == 66, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) {
    const uint8_t* group = block.groups[unit];
    const uint32_t word = load_u32(group + 4);
    set_scale(units[unit], scale * (0.5f + float(word >> 28)) * 0.25f);
    for (int part = 0; part < 4; ++part) {
      const uint32_t signs = even_signs(word >> (7 * part) & 127);
      expand_iq2(kGridIq2Xxs[group[part]], signs, units[unit].q + 8 * part);
    }
  }
}

constexpr GridFormat kFormat{.grid = kGridIq2Xxs,
                             .entry_count = 256,
                             .entry_weights = 8,
                             .levels = {8, 25, 43},
                             .signs = GridSigns::even,
                             .cell_weights = 8,
                             .group_count = 8,
                             .s_high = 15,
                             .stored_factor = 8};

void encode(const float* weights, const float* importance, std::byte* out) {
  GridFit fit;
  fit_grid(weights, importance, kFormat, fit);
  Block block{};
  block.scale = fit.scale;
  for (int unit = 0; unit < 8; ++unit) {
    for (int part = 0; part < 4; ++part) {
      block.groups[unit][part] = uint8_t(fit.index[4 * unit + part]);
    }
    store_u32(signs_and_scale(fit, unit), block.groups[unit] + 4);
  }
  store(block, out);
}

}  // namespace

extern const Type type_iq2_xxs;
constinit const Type type_iq2_xxs{.name = "IQ2_XXS",
                                  .gguf_id = 16,
                                  .block_weights = 256,
                                  .block_bytes = sizeof(Block),
                                  .halves = false,
                                  .offsets = false,
                                  .decode = decode_scaled<8, integers>,
                                  .integers = integers,
                                  .encode = encode,
                                  .rms_error_max = 0.3533f};

}  // namespace cairn::quant
