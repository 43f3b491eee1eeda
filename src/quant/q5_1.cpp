// Q5_1: 32 weights, f16 scale and minimum, 5 bits; weight = scale * q + min. Bit i of `high` is the
// fifth bit of weight i.
#include "quant/block.h"
#include "quant/fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  Half min;
  uint8_t high[4];
  uint8_t nibbles[16];
};
static_assert(sizeof(Block) == 24, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  set_scale(units[0], to_float(block.scale), to_float(block.min));
  unpack_nibbles(block.nibbles, units[0].q);
  const uint32_t high = load_u32(block.high);
  for (int i = 0; i < 32; ++i) units[0].q[i] = int8_t(units[0].q[i] + int(high >> i & 1) * 16);
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 32, prepared);
  LineBlock fit;
  fit_line(prepared, 31, fit);
  Block block;
  block.scale = fit.scale;
  block.min = fit.min;
  pack_fifth_bits(fit.q, block.high);
  pack_nibbles(fit.q, block.nibbles);
  store(block, out);
}

}  // namespace

extern const Type type_q5_1;
constinit const Type type_q5_1{.name = "Q5_1",
                               .gguf_id = 7,
                               .block_weights = 32,
                               .block_bytes = sizeof(Block),
                               .halves = false,
                               .offsets = true,
                               .decode = decode_offset<1, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.0341f};

}  // namespace cairn::quant
