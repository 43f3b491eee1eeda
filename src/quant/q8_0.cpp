// Q8_0: 32 weights, one f16 scale, signed bytes; weight = scale * q. A file may hold -128.
#include "quant/block.h"

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
                               .encode = nullptr,
                               .rms_error_max = 0};

}  // namespace cairn::quant
