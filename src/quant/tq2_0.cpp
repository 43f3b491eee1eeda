// TQ2_0: 256 weights of 2 bits times one f16 scale; weight = scale * (q - 1), q = 3 included. A
// byte holds four weights 32 apart.
#include "quant/block.h"
#include "quant/fit.h"

namespace cairn::quant {
namespace {

struct Block {
  uint8_t pairs[64];
  Half scale;
};
static_assert(sizeof(Block) == 66, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) {
    set_scale(units[unit], scale);
    const uint8_t* pairs = block.pairs + 32 * (unit / 4);
    for (int i = 0; i < 32; ++i) units[unit].q[i] = int8_t((pairs[i] >> (2 * (unit % 4)) & 3) - 1);
  }
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 256, prepared);
  Block block{};
  int8_t q[256];
  fit_ternary(prepared, block.scale, q);
  for (int i = 0; i < 256; ++i) {
    block.pairs[32 * (i / 128) + i % 32] |= uint8_t((q[i] + 1) << (2 * (i / 32 % 4)));
  }
  store(block, out);
}

}  // namespace

extern const Type type_tq2_0;
constinit const Type type_tq2_0{.name = "TQ2_0",
                                .gguf_id = 35,
                                .block_weights = 256,
                                .block_bytes = sizeof(Block),
                                .halves = false,
                                .offsets = false,
                                .decode = decode_scaled<8, integers>,
                                .integers = integers,
                                .encode = encode,
                                .rms_error_max = 0.437f};

}  // namespace cairn::quant
