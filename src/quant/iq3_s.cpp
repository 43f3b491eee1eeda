// IQ3_S: 256 weights in 8 groups of 32; weight = scale * (2 * s + 1) * sign * magnitude. A grid
// index of 4 weights has 8 bits in `low` and 1 in `high`. A byte of `groups` holds two s, low
// first.
#include "quant/block.h"
#include "quant/grids/grid.h"
#include "quant/grids/grid_fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  uint8_t low[64];
  uint8_t high[8];
  uint8_t signs[32];
  uint8_t groups[4];
};
static_assert(sizeof(Block) == 110, "on-disk layout fixed by GGUF");

constexpr int8_t kMagnitudes[8] = {1, 3, 5, 7, 9, 11, 13, 15};

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) {
    const int group = block.groups[unit / 2] >> (4 * (unit % 2)) & 15;
    set_scale(units[unit], scale * float(2 * group + 1));
    for (int part = 0; part < 8; ++part) {
      const int index = block.low[8 * unit + part] | (block.high[unit] >> part & 1) << 8;
      const uint32_t signs = uint32_t(block.signs[4 * unit + part / 2]) >> (4 * (part % 2));
      expand_iq3(kGridIq3S[index], signs, kMagnitudes, units[unit].q + 4 * part);
    }
  }
}

constexpr GridFormat kFormat{.grid = kGridIq3S,
                             .entry_count = 512,
                             .entry_weights = 4,
                             .levels = {1, 3, 5, 7, 9, 11, 13, 15},
                             .signs = GridSigns::stored,
                             .cell_weights = 8,
                             .group_count = 8,
                             .s_high = 15,
                             .stored_factor = 1};

void encode(const float* weights, const float* importance, std::byte* out) {
  GridFit fit;
  fit_grid(weights, importance, kFormat, fit);
  Block block{};
  block.scale = fit.scale;
  for (int part = 0; part < 64; ++part) {
    block.low[part] = uint8_t(fit.index[part] & 255);
    block.high[part / 8] |= uint8_t((fit.index[part] >> 8) << (part % 8));
  }
  std::memcpy(block.signs, fit.signs, sizeof block.signs);
  pack_scales(fit, block.groups);
  store(block, out);
}

}  // namespace

extern const Type type_iq3_s;
constinit const Type type_iq3_s{.name = "IQ3_S",
                                .gguf_id = 21,
                                .block_weights = 256,
                                .block_bytes = sizeof(Block),
                                .halves = false,
                                .offsets = false,
                                .decode = decode_scaled<8, integers>,
                                .integers = integers,
                                .encode = encode,
                                .rms_error_max = 0.1331f};

}  // namespace cairn::quant
