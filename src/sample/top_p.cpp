// Keeps the fewest tokens that together have probability top_p (Holtzman et al., 2019).
// Ties at the edge: the lower id stays.
#include "sample/stage.h"

namespace cairn::sample {

namespace {

void top_p(Candidates& candidates, const SamplingParams& params) {
  if (params.top_p < 1) candidates.keep_nucleus(params.top_p);
}

}  // namespace

extern const SamplerStage sampler_top_p;
constinit const SamplerStage sampler_top_p{.name = "top_p", .apply = top_p};

}  // namespace cairn::sample
