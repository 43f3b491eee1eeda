// TQ1_0: 256 weights in -1, 0, 1 times one f16 scale. A byte is a fraction of 256 whose ternary
// digits, most significant first, are weights + 1: multiplying by 3 shifts the next digit above
// 256. Bytes 0-31 hold 5 runs of 32 weights, 32-47 5 runs of 16, `tail` 4 runs of 4.
#include "quant/block.h"
#include "quant/fit.h"

namespace cairn::quant {
namespace {

struct Block {
  uint8_t digits[48];
  uint8_t tail[4];
  Half scale;
};
static_assert(sizeof(Block) == 54, "on-disk layout fixed by GGUF");

// `run_count` runs of `byte_count` weights, the first of them weight `first` of the block.
void unpack_digits(const uint8_t* bytes, int byte_count, int run_count, Unit* units, int first) {
  for (int i = 0; i < byte_count; ++i) {
    uint8_t fraction = bytes[i];
    for (int run = 0; run < run_count; ++run) {
      const int weight = first + run * byte_count + i;
      units[weight / 32].q[weight % 32] = int8_t((fraction * 3 >> 8) - 1);
      fraction = uint8_t(fraction * 3);
    }
  }
}

void integers(const std::byte* in, Unit* units) {
  const Block block = load<Block>(in);
  const float scale = to_float(block.scale);
  for (int unit = 0; unit < 8; ++unit) set_scale(units[unit], scale);
  unpack_digits(block.digits, 32, 5, units, 0);
  unpack_digits(block.digits + 32, 16, 5, units, 160);
  unpack_digits(block.tail, 4, 4, units, 240);
}

// The inverse: five digits make a number below 243, of which the byte is the 256ths, rounded up so
// that truncation finds every digit again.
void pack_digits(const int8_t* q, int byte_count, int run_count, uint8_t* bytes) {
  for (int i = 0; i < byte_count; ++i) {
    int number = 0;
    for (int digit = 0; digit < 5; ++digit) {
      number = 3 * number + (digit < run_count ? q[digit * byte_count + i] + 1 : 0);
    }
    bytes[i] = uint8_t((number * 256 + 242) / 243);
  }
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 256, prepared);
  Block block{};
  int8_t q[256];
  fit_ternary(prepared, block.scale, q);
  pack_digits(q, 32, 5, block.digits);
  pack_digits(q + 160, 16, 5, block.digits + 32);
  pack_digits(q + 240, 4, 4, block.tail);
  store(block, out);
}

}  // namespace

extern const Type type_tq1_0;
constinit const Type type_tq1_0{.name = "TQ1_0",
                                .gguf_id = 34,
                                .block_weights = 256,
                                .block_bytes = sizeof(Block),
                                .halves = false,
                                .offsets = false,
                                .decode = decode_scaled<8, integers>,
                                .integers = integers,
                                .encode = encode,
                                .rms_error_max = 0.437f};

}  // namespace cairn::quant
