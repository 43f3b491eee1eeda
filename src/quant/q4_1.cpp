// Q4_1: 32 weights, f16 scale and minimum, 4 bits; weight = scale * q + min.
#include "quant/block.h"
#include "quant/fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  Half min;
  uint8_t nibbles[16];
};
static_assert(sizeof(Block) == 20, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  set_scale(units[0], to_float(block.scale), to_float(block.min));
  unpack_nibbles(block.nibbles, units[0].q);
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 32, prepared);
  LineBlock fit;
  fit_line(prepared, 15, fit);
  Block block;
  block.scale = fit.scale;
  block.min = fit.min;
  pack_nibbles(fit.q, block.nibbles);
  store(block, out);
}

}  // namespace

extern const Type type_q4_1;
constinit const Type type_q4_1{.name = "Q4_1",
                               .gguf_id = 3,
                               .block_weights = 32,
                               .block_bytes = sizeof(Block),
                               .halves = false,
                               .offsets = true,
                               .decode = decode_offset<1, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.0701f};

}  // namespace cairn::quant
