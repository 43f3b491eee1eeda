// IQ1_S: 256 weights in 8 groups of 32; weight = scale * (2 * s + 1) * (g ± 1/8) with g in -1, 0, 1
// from the grid. A group's word: four times 3 upper bits of a grid index, 3-bit s, sign of the
// eighth. As integers: q = 8 * g ± 1, and the scale is an eighth (exact).
#include "quant/block.h"
#include "quant/grids/grid.h"
#include "quant/grids/grid_fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  uint8_t low[32];
  uint8_t words[16];
};
static_assert(sizeof(Block) == 50, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) {
    const uint32_t word = load_u16(block.words + 2 * unit);
    set_scale(units[unit], scale * float(2 * (word >> 12 & 7) + 1) * 0.125f);
    for (int part = 0; part < 4; ++part) {
      const uint32_t index = block.low[4 * unit + part] | (word >> (3 * part) & 7) << 8;
      expand_iq1(kGridIq1[index], word >> 15 != 0, units[unit].q + 8 * part);
    }
  }
}

constexpr GridFormat kFormat{.grid = kGridIq1,
                             .entry_count = 2048,
                             .entry_weights = 8,
                             .levels = {-8, 0, 8},
                             .signs = GridSigns::shifted,
                             .cell_weights = 32,
                             .group_count = 8,
                             .s_high = 7,
                             .stored_factor = 8};

void encode(const float* weights, const float* importance, std::byte* out) {
  GridFit fit;
  fit_grid(weights, importance, kFormat, fit);
  Block block{};
  block.scale = fit.scale;
  for (int unit = 0; unit < 8; ++unit) {
    uint32_t word = uint32_t(fit.s[unit]) << 12 | uint32_t(fit.is_low[4 * unit]) << 15;
    for (int part = 0; part < 4; ++part) {
      const uint32_t index = fit.index[4 * unit + part];
      block.low[4 * unit + part] = uint8_t(index & 255);
      word |= (index >> 8) << (3 * part);
    }
    store_u16(word, block.words + 2 * unit);
  }
  store(block, out);
}

}  // namespace

extern const Type type_iq1_s;
constinit const Type type_iq1_s{.name = "IQ1_S",
                                .gguf_id = 19,
                                .block_weights = 256,
                                .block_bytes = sizeof(Block),
                                .halves = false,
                                .offsets = false,
                                .decode = decode_scaled<8, integers>,
                                .integers = integers,
                                .encode = encode,
                                .rms_error_max = 0.5246f};

}  // namespace cairn::quant
