// F32: IEEE binary32, little-endian, every bit pattern kept.
// One weight a block; there is nothing to search, so `importance` is not read.
#include <cstring>

#include "quant/quant.h"

namespace cairn::quant {
namespace {

void decode(const std::byte* block, float* weights) {
  std::memcpy(weights, block, sizeof(float));
}

void encode(const float* weights, const float* /*importance*/, std::byte* block) {
  std::memcpy(block, weights, sizeof(float));
}

}  // namespace

extern const Type type_f32;
constinit const Type type_f32{.name = "F32",
                              .gguf_id = 0,
                              .block_weights = 1,
                              .block_bytes = sizeof(float),
                              .halves = false,
                              .offsets = false,
                              .decode = decode,
                              .integers = nullptr,
                              .encode = encode,
                              .rms_error_max = 0};

}  // namespace cairn::quant
