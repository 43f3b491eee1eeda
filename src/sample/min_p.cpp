// Keeps every token at least min_p times as likely as the likeliest one (Nguyen et al., 2024).
#include "base/elementary.h"
#include "sample/stage.h"

namespace cairn::sample {

namespace {

bool is_on(const SamplingParams& params) {
  return params.min_p > 0;
}

void apply(Candidates& candidates, StageContext& context) {
  candidates.keep_from(candidates.max_logit() + elementary::log(context.params.min_p),
                       size_t(context.params.min_keep));
}

}  // namespace

extern const SamplerStage sampler_min_p;
constinit const SamplerStage sampler_min_p{
    .name = "min_p", .letter = 'm', .keeps_likeliest = true, .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
