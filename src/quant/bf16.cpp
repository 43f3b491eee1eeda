// BF16: the upper half of an IEEE binary32. NaN stays NaN.
// One weight a block; there is nothing to search, so `importance` is not read.
#include <cstring>

#include "base/half.h"
#include "quant/quant.h"

namespace cairn::quant {
namespace {

void decode(const std::byte* block, float* weights) {
  BFloat16 stored;
  std::memcpy(&stored, block, sizeof stored);
  *weights = to_float(stored);
}

void encode(const float* weights, const float* /*importance*/, std::byte* block) {
  const BFloat16 stored = to_bfloat16(*weights);
  std::memcpy(block, &stored, sizeof stored);
}

}  // namespace

extern const Type type_bf16;
constinit const Type type_bf16{.name = "BF16",
                               .gguf_id = 30,
                               .block_weights = 1,
                               .block_bytes = sizeof(BFloat16),
                               .halves = false,
                               .offsets = false,
                               .decode = decode,
                               .integers = nullptr,
                               .encode = encode,
                               .rms_error_max = 0.00168f};

}  // namespace cairn::quant
