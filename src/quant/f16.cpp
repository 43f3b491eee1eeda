// F16: IEEE binary16. NaN stays NaN; what is beyond 65504 becomes infinite.
// One weight a block; there is nothing to search, so `importance` is not read.
#include <cstring>

#include "base/half.h"
#include "quant/quant.h"

namespace cairn::quant {
namespace {

void decode(const std::byte* block, float* weights) {
  Half stored;
  std::memcpy(&stored, block, sizeof stored);
  *weights = to_float(stored);
}

void encode(const float* weights, const float* /*importance*/, std::byte* block) {
  const Half stored = to_half(*weights);
  std::memcpy(block, &stored, sizeof stored);
}

}  // namespace

extern const Type type_f16;
constinit const Type type_f16{.name = "F16",
                              .gguf_id = 1,
                              .block_weights = 1,
                              .block_bytes = sizeof(Half),
                              .halves = false,
                              .offsets = false,
                              .decode = decode,
                              .integers = nullptr,
                              .encode = encode,
                              .rms_error_max = 0.00021f};

}  // namespace cairn::quant
