// Keeps the top_k likeliest tokens (Fan et al., 2018); 0 keeps all.
#include "sample/stage.h"

namespace cairn::sample {

namespace {

void top_k(Candidates& candidates, const SamplingParams& params) {
  if (params.top_k > 0) candidates.keep_top(params.top_k);
}

}  // namespace

extern const SamplerStage sampler_top_k;
constinit const SamplerStage sampler_top_k{.name = "top_k", .apply = top_k};

}  // namespace cairn::sample
