// TQ2_0: 256 weights of 2 bits times one f16 scale; weight = scale * (q - 1), q = 3 included. A
// byte holds four weights 32 apart.
#include "quant/block.h"

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
                                .encode = nullptr,
                                .rms_error_max = 0};

}  // namespace cairn::quant
