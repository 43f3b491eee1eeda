// Keeps the fewest tokens that together have probability top_p (Holtzman et al., 2019).
// Ties at the edge: the lower id stays.
#include "sample/stage.h"

namespace cairn::sample {

namespace {

bool is_on(const SamplingParams& params) {
  return params.top_p < 1;
}

void apply(Candidates& candidates, StageContext& context) {
  candidates.keep_nucleus(context.params.top_p, size_t(context.params.min_keep));
}

}  // namespace

extern const SamplerStage sampler_top_p;
constinit const SamplerStage sampler_top_p{
    .name = "top_p", .letter = 'p', .keeps_likeliest = true, .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
