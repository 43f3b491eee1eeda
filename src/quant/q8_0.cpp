// Q8_0: 32 weights, one f16 scale, signed bytes; weight = scale * q. A file may hold -128.
#include <cmath>

#include "quant/block.h"
#include "quant/fit.h"

namespace cairn::quant {
namespace {

struct Block {
  Half scale;
  int8_t q[32];
};
static_assert(sizeof(Block) == 34, "on-disk layout fixed by GGUF");

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  set_scale(units[0], to_float(block.scale));
  std::memcpy(units[0].q, block.q, sizeof block.q);
}

// Trying ends of the range gains nothing at steps this fine: the peak, refined, is the only
// candidate. The scale is made positive, as readers expect; the range is symmetric.
void encode(const float* weights, const float* importance, std::byte* out) {
  constexpr Range kRange{-127, 127};
  Prepared prepared;
  prepare(weights, importance, 32, prepared);
  Block block;
  const float scale = fit_scale(prepared, kRange, 0, block.scale);
  block.scale = Half(uint32_t(block.scale) & 0x7fffu);
  quantize({prepared.x, prepared.w, 32}, std::abs(scale), kRange, block.q);
  store(block, out);
}

}  // namespace

extern const Type type_q8_0;
constinit const Type type_q8_0{.name = "Q8_0",
                               .gguf_id = 8,
                               .block_weights = 32,
                               .block_bytes = sizeof(Block),
                               .halves = false,
                               .offsets = false,
                               .decode = decode_scaled<1, integers>,
                               .integers = integers,
                               .encode = encode,
                               .rms_error_max = 0.00523f};

}  // namespace cairn::quant
