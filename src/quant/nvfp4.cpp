// NVFP4: 64 weights of E2M1 in 4 groups of 16, each with an unsigned E4M3 scale (bias 7). The
// levels here are doubled to be integers, so scales are halved. Codes 0 and 127 (NaN) mean 0.
// No encoder: it would need a scale for the whole tensor, which a block cannot hold.
#include "quant/block.h"
#include "quant/fp4.h"

namespace cairn::quant {
namespace {

struct Block {
  uint8_t scales[4];
  uint8_t nibbles[32];
};
static_assert(sizeof(Block) == 36, "on-disk layout fixed by GGUF");

// Half of the E4M3 number. The sign bit takes part in nothing.
float half_scale(uint32_t code) {
  const uint32_t exponent = code >> 3 & 15;
  const float fraction = float(code & 7);
  if (code == 0 || code == 127) return 0;
  if (exponent == 0) return fraction * 0x1p-10f;
  return (8 + fraction) * std::bit_cast<float>((exponent + 127 - 11) << 23);
}

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  for (int group = 0; group < 4; ++group) {
    Unit& unit = units[group / 2];
    unit.scale[group % 2] = half_scale(block.scales[group]);
    unit.offset[group % 2] = 0;
    int8_t* q = unit.q + 16 * (group % 2);
    for (int i = 0; i < 8; ++i) {
      q[i] = kFp4Levels[block.nibbles[8 * group + i] & 15];
      q[i + 8] = kFp4Levels[block.nibbles[8 * group + i] >> 4];
    }
  }
}

}  // namespace

extern const Type type_nvfp4;
constinit const Type type_nvfp4{.name = "NVFP4",
                                .gguf_id = 40,
                                .block_weights = 64,
                                .block_bytes = sizeof(Block),
                                .halves = true,
                                .offsets = false,
                                .decode = decode_scaled<2, integers>,
                                .integers = integers,
                                .encode = nullptr,
                                .rms_error_max = 0};

}  // namespace cairn::quant
