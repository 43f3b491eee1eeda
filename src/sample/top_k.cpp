// Keeps the top_k likeliest tokens (Fan et al., 2018); 0 keeps all.
#include "sample/stage.h"

namespace cairn::sample {

namespace {

bool is_on(const SamplingParams& params) {
  return params.top_k > 0;
}

void apply(Candidates& candidates, StageContext& context) {
  candidates.keep_top(size_t(context.params.top_k));
}

}  // namespace

extern const SamplerStage sampler_top_k;
constinit const SamplerStage sampler_top_k{
    .name = "top_k", .letter = 'k', .keeps_likeliest = true, .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
