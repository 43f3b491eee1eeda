// Divides the logits: below 1 the likely become likelier, above 1 the unlikely gain. A dynamic
// temperature follows the entropy (Cao, 2023): lower where the model is sure.
#include <algorithm>

#include "base/elementary.h"
#include "sample/stage.h"

namespace cairn::sample {

namespace {

bool is_on(const SamplingParams& params) {
  return params.temperature != 1 || params.dynatemp_range > 0;
}

// range: how far the temperature may go from the one asked for, down and up.
float dynamic_temperature(Candidates& candidates, const SamplingParams& params) {
  const float low = std::max(0.0f, params.temperature - params.dynatemp_range);
  const float high = params.temperature + params.dynatemp_range;
  const size_t count = candidates.value_sums().count;
  if (count < 2) return 1;
  const ExpSums sums = candidates.exp_sums();
  const double entropy = double(elementary::log(float(sums.total))) - sums.weighted / sums.total;
  const float share = float(entropy / double(elementary::log(float(count))));
  // share ^ exponent; 0 ^ 0 is 1, as in the C library.
  const float exponent = params.dynatemp_exponent;
  const float power = exponent == 0 ? 1.0f
                      : share <= 0  ? 0.0f
                                    : elementary::exp(exponent * elementary::log(share));
  return low + (high - low) * power;
}

void apply(Candidates& candidates, StageContext& context) {
  const SamplingParams& params = context.params;
  const float temperature =
      params.dynatemp_range > 0 ? dynamic_temperature(candidates, params) : params.temperature;
  if (temperature > 0) {
    candidates.divide(temperature);
  } else {
    candidates.keep_top(1);
  }
}

}  // namespace

extern const SamplerStage sampler_temperature;
constinit const SamplerStage sampler_temperature{
    .name = "temperature", .letter = 't', .keeps_likeliest = true, .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
