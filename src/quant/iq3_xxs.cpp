// IQ3_XXS: 256 weights in 8 groups of 32; weight = scale * (s + 1/2) / 2 * sign * magnitude. A
// group is eight grid indices of 4 weights and a word: four times 7 sign bits, 4-bit s on top.
#include "quant/block.h"
#include "quant/grids/grid.h"
#include "quant/grids/grid_fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  uint8_t indices[64];
  uint8_t words[32];
};
static_assert(sizeof(Block) == 98, "on-disk layout fixed by GGUF");

constexpr int8_t kMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) {
    const uint32_t word = load_u32(block.words + 4 * unit);
    set_scale(units[unit], scale * (0.5f + float(word >> 28)) * 0.5f);
    for (int part = 0; part < 8; ++part) {
      const uint32_t signs = even_signs(word >> (7 * (part / 2)) & 127) >> (4 * (part % 2));
      const uint32_t packed = kGridIq3Xxs[block.indices[8 * unit + part]];
      expand_iq3(packed, signs, kMagnitudes, units[unit].q + 4 * part);
    }
  }
}

constexpr GridFormat kFormat{.grid = kGridIq3Xxs,
                             .entry_count = 256,
                             .entry_weights = 4,
                             .levels = {4, 12, 20, 28, 36, 44, 52, 62},
                             .signs = GridSigns::even,
                             .cell_weights = 8,
                             .group_count = 8,
                             .s_high = 15,
                             .stored_factor = 4};

void encode(const float* weights, const float* importance, std::byte* out) {
  GridFit fit;
  fit_grid(weights, importance, kFormat, fit);
  Block block{};
  block.scale = fit.scale;
  for (int part = 0; part < 64; ++part) block.indices[part] = uint8_t(fit.index[part]);
  for (int unit = 0; unit < 8; ++unit) {
    store_u32(signs_and_scale(fit, unit), block.words + 4 * unit);
  }
  store(block, out);
}

}  // namespace

extern const Type type_iq3_xxs;
constinit const Type type_iq3_xxs{.name = "IQ3_XXS",
                                  .gguf_id = 18,
                                  .block_weights = 256,
                                  .block_bytes = sizeof(Block),
                                  .halves = false,
                                  .offsets = false,
                                  .decode = decode_scaled<8, integers>,
                                  .integers = integers,
                                  .encode = encode,
                                  .rms_error_max = 0.1822f};

}  // namespace cairn::quant
