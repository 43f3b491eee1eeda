// Q4_0: 32 weights, one f16 scale, 4 bits; weight = scale * (q - 8).
#include "quant/block.h"
#include "quant/fit.h"

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
  for (int8_t& q : units[0].q) q = int8_t(q - 8);
}

void encode(const float* weights, const float* importance, std::byte* out) {
  constexpr Range kRange{-8, 7};
  Prepared prepared;
  prepare(weights, importance, 32, prepared);
  Block block;
  const float scale = fit_scale(prepared, kRange, 8, block.scale);
  int8_t q[32];
  quantize({prepared.x, prepared.w, 32}, scale, kRange, q);
  for (int8_t& code : q) code = int8_t(code - kRange.low);
  pack_nibbles(q, block.nibbles);
  store(block, out);
}

}  // namespace

extern const Type type_q4_0;
constinit const Type type_q4_0{.name = "Q4_0",
                               .gguf_id = 2,
                               .block_weights = 32,
                               .block_bytes = sizeof(Block),
                               .halves = false,
                               .offsets = false,
                               .decode = decode_scaled<1, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.0812f};

}  // namespace cairn::quant
