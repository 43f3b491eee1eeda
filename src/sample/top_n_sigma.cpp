// Keeps the tokens whose logit is at most top_n_sigma standard deviations below the largest (Tang
// et al., 2024, "Top-nσ: Not All Logits Are You Need"). The deviation is that of all candidates.
#include <algorithm>
#include <cmath>

#include "sample/stage.h"

namespace cairn::sample {

namespace {

bool is_on(const SamplingParams& params) {
  return params.top_n_sigma > 0;
}

void apply(Candidates& candidates, StageContext& context) {
  const ValueSums sums = candidates.value_sums();
  if (sums.count < 2) return;
  const double mean = sums.total / double(sums.count);
  const double variance = std::max(0.0, sums.squares / double(sums.count) - mean * mean);
  const double reach = double(context.params.top_n_sigma) * std::sqrt(variance);
  candidates.keep_from(float(double(candidates.max_logit()) - reach), 0);
}

}  // namespace

extern const SamplerStage sampler_top_n_sigma;
constinit const SamplerStage sampler_top_n_sigma{
    .name = "top_n_sigma", .letter = 's', .keeps_likeliest = true, .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
