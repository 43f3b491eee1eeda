// Rotary scalings that a GGUF file holds as tensors: Llama 3's and those of long Phi 3.
// Pure; any thread.
#pragma once

#include <vector>

#include "base/result.h"
#include "convert/config.h"

namespace cairn::convert {

// What each pair's frequency is divided by; empty where the model has no such scaling.
Result<std::vector<float>> llama3_factors(const Config& config);

struct LongFactors {
  std::vector<float> long_factors, short_factors;  // Empty: none.
  float attention_factor = 1;
};
Result<LongFactors> long_rope_factors(const Config& config);

}  // namespace cairn::convert
