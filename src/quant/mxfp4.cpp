// MXFP4 (OCP Microscaling Formats 1.0): 32 weights of E2M1 with one power of two as a scale. The
// levels here are doubled to be integers, so the scale is 2^(exponent - 128); exponents 0 and 1
// give subnormal f32, which are kept.
#include "quant/block.h"
#include "quant/fp4.h"

namespace cairn::quant {
namespace {

struct Block {
  uint8_t exponent;
  uint8_t nibbles[16];
};
static_assert(sizeof(Block) == 17, "on-disk layout fixed by GGUF");

// 2^(exponent - 128). The smallest normal f32 is 2^-126, so 0 and 1 set a bit of the fraction.
float half_power(uint32_t exponent) {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
}

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  set_scale(units[0], half_power(block.exponent));
  unpack_nibbles(block.nibbles, units[0].q);
  for (int8_t& q : units[0].q) q = kFp4Levels[q];
}

}  // namespace

extern const Type type_mxfp4;
constinit const Type type_mxfp4{.name = "MXFP4",
                                .gguf_id = 39,
                                .block_weights = 32,
                                .block_bytes = sizeof(Block),
                                .halves = false,
                                .offsets = false,
                                .decode = decode_scaled<1, integers>,
                                .integers = integers,
                                .encode = nullptr,
                                .rms_error_max = 0};

}  // namespace cairn::quant
