// Q5_0: 32 weights, one f16 scale, 5 bits; weight = scale * (q - 16). Bit i of `high` is the fifth
// bit of weight i.
#include "quant/block.h"
#include "quant/fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  uint8_t high[4];
  uint8_t nibbles[16];
};
static_assert(sizeof(Block) == 22, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  set_scale(units[0], to_float(block.scale));
  unpack_nibbles(block.nibbles, units[0].q);
  const uint32_t high = load_u32(block.high);
  for (int i = 0; i < 32; ++i) units[0].q[i] = int8_t(units[0].q[i] + int(high >> i & 1) * 16 - 16);
}

void encode(const float* weights, const float* importance, std::byte* out) {
  constexpr Range kRange{-16, 15};
  Prepared prepared;
  prepare(weights, importance, 32, prepared);
  Block block;
  const float scale = fit_scale(prepared, kRange, 8, block.scale);
  int8_t q[32];
  quantize({prepared.x, prepared.w, 32}, scale, kRange, q);
  for (int8_t& code : q) code = int8_t(code - kRange.low);
  pack_fifth_bits(q, block.high);
  pack_nibbles(q, block.nibbles);
  store(block, out);
}

}  // namespace

extern const Type type_q5_0;
constinit const Type type_q5_0{.name = "Q5_0",
                               .gguf_id = 6,
                               .block_weights = 32,
                               .block_bytes = sizeof(Block),
                               .halves = false,
                               .offsets = false,
                               .decode = decode_scaled<1, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.0404f};

}  // namespace cairn::quant
