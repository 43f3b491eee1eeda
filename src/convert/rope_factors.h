// What of a head rotates, and the scalings that a GGUF file holds as tensors: Llama 3's and those
// of long Phi 3. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "convert/config.h"

namespace cairn::convert {

// A rotary parameter that has to be there. Errors: invalid_data.
Result<double> rope_number(const Config& config, std::string_view key);

// How much of a head rotates, 0 to 1; and how many of its elements.
Result<double> rotated_part(const Config& config);
Result<int64_t> rotated_dims(const Config& config);

// What each pair's frequency is divided by; empty where the model has no such scaling.
Result<std::vector<float>> llama3_factors(const Config& config);

// A list of `count` numbers. Errors: invalid_data.
Result<std::vector<float>> factor_list(const Json& rope, std::string_view key, int64_t count);

struct LongFactors {
  std::vector<float> long_factors, short_factors;  // Empty: none.
  float attention_factor = 1;
};
Result<LongFactors> long_rope_factors(const Config& config);

}  // namespace cairn::convert
