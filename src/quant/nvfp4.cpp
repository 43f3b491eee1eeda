// NVFP4: 64 weights of E2M1 in 4 groups of 16, each with an unsigned E4M3 scale (bias 7). The
// levels here are doubled to be integers, so scales are halved. Codes 0 and 127 (NaN) mean 0.
// A block has no scale for its tensor: weights far below 1 have the few scales at E4M3's low end.
#include <algorithm>
#include <cmath>

#include "quant/block.h"
#include "quant/fp4.h"
#include "quant/fp4_levels.h"
#include "quant/search.h"

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

// The largest finite scale's code.
constexpr int kCodeMax = 126;

// The best scale of all about the one that brings the peak to the largest level: from half of it
// (the peak is cut) to twice (it has the level below the middle). 0 where nothing is better.
int best_scale_code(const Group& group, float unit) {
  const float peak = std::abs(peak_of(group)) * unit;
  int middle = 0;
  while (middle < kCodeMax && half_scale(uint32_t(middle + 1)) * 12 <= peak) ++middle;
  float best_error = 0;
  for (int i = 0; i < group.count; ++i) best_error += group.w[i] * group.x[i] * group.x[i];
  int best = 0;
  for (int code = std::max(middle - 8, 1); code <= std::min(middle + 8, kCodeMax); ++code) {
    const float error = error_of_fp4(group, half_scale(uint32_t(code)) / unit);
    if (!(error < best_error)) continue;
    best_error = error;
    best = code;
  }
  return best;
}

void encode(const float* weights, const float* importance, std::byte* out) {
  Prepared prepared;
  prepare(weights, importance, 64, prepared);
  Block block{};
  for (int index = 0; index < 4; ++index) {
    const Group group{prepared.x + 16 * index, prepared.w + 16 * index, 16};
    const int code = best_scale_code(group, prepared.unit);
    block.scales[index] = uint8_t(code);
    if (code == 0) continue;
    int8_t codes[16];
    quantize_fp4(group, half_scale(uint32_t(code)) / prepared.unit, codes);
    for (int i = 0; i < 8; ++i)
      block.nibbles[8 * index + i] = uint8_t(codes[i] | codes[i + 8] << 4);
  }
  store(block, out);
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
                                .encode = encode,
                                .rms_error_max = 0.0895f};

}  // namespace cairn::quant
