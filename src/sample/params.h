// What a caller may say about sampling: one table of fields, from which the command line's options,
// its help, the keys of model files and the range checks are made. Thread-safe: constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace cairn::sample {

struct SamplingParams {
  float temperature = 0.8f;  // 0 or less: always the likeliest token.
  int32_t top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  uint64_t seed = 0;  // Equal seeds choose equal tokens.
};

// A number among them; exactly one of the two members is set.
struct SamplingField {
  std::string_view option;    // "top-k": the command line's spelling.
  std::string_view file_key;  // Where a model file may suggest a value.
  float SamplingParams::*real;
  int32_t SamplingParams::*count;
  double min, max;
  std::string_view doc;
};

std::span<const SamplingField> sampling_fields();

double get(const SamplingParams& params, const SamplingField& field);
// Errors: invalid_argument, naming the option, when the value is out of range or not a number.
Status set(SamplingParams& params, const SamplingField& field, double value);

}  // namespace cairn::sample
