// IQ4_NL: 32 weights, one f16 scale, 4 bits that name one of 16 unevenly spaced levels.
#include "quant/block.h"
#include "quant/iq4_levels.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  uint8_t nibbles[16];
};
static_assert(sizeof(Block) == 18, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  set_scale(units[0], to_float(block.scale));
  unpack_nibbles(block.nibbles, units[0].q);
  for (int8_t& q : units[0].q) q = kIq4Levels[q];
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 32, prepared);
  const Group group{prepared.x, prepared.w, 32};
  Block block;
  block.scale = stored_scale(search_iq4_scale(group), prepared.unit);
  int8_t codes[32];
  quantize_iq4(group, to_float(block.scale) / prepared.unit, codes);
  pack_nibbles(codes, block.nibbles);
  store(block, out);
}

}  // namespace

extern const Type type_iq4_nl;
constinit const Type type_iq4_nl{.name = "IQ4_NL",
                                 .gguf_id = 20,
                                 .block_weights = 32,
                                 .block_bytes = sizeof(Block),
                                 .halves = false,
                                 .offsets = false,
                                 .decode = decode_scaled<1, integers>,
                                 .integers = integers,
                                 .encode = encode,
                                 .rms_error_max = 0.0736f};

}  // namespace cairn::quant
