// The table of sampling parameters. Defaults and ranges are those that other local engines have
// made people used to (docs of the HTTP interface list the same table).
#include "sample/params.h"

#include <cmath>

namespace cairn::sample {

namespace {

constexpr SamplingField kFields[] = {
    {"temp", "general.sampling.temp", &SamplingParams::temperature, nullptr, 0, 100,
     "how freely to choose; 0 always takes the likeliest token"},
    {"top-k", "general.sampling.top_k", nullptr, &SamplingParams::top_k, 0, 1 << 24,
     "choose among the K likeliest tokens; 0 for all"},
    {"top-p", "general.sampling.top_p", &SamplingParams::top_p, nullptr, 0, 1,
     "choose among the likeliest tokens that together have this probability; 1 for all"},
    {"min-p", "general.sampling.min_p", &SamplingParams::min_p, nullptr, 0, 1,
     "drop tokens less likely than this share of the likeliest; 0 for none"},
};

}  // namespace

std::span<const SamplingField> sampling_fields() {
  return kFields;
}

double get(const SamplingParams& params, const SamplingField& field) {
  return field.real != nullptr ? double(params.*field.real) : double(params.*field.count);
}

Status set(SamplingParams& params, const SamplingField& field, double value) {
  const bool in_range = value >= field.min && value <= field.max;  // False for NaN.
  if (!in_range || (field.count != nullptr && value != std::floor(value))) {
    return fail(ErrorCode::invalid_argument, "{}: expected {} from {} to {}, found {}",
                field.option, field.count != nullptr ? "a whole number" : "a number", field.min,
                field.max, value);
  }
  if (field.real != nullptr) {
    params.*field.real = float(value);
  } else {
    params.*field.count = int32_t(value);
  }
  return Ok{};
}

}  // namespace cairn::sample
