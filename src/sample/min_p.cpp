// Keeps every token at least min_p times as likely as the likeliest one (Nguyen et al., 2024).
#include "base/elementary.h"
#include "sample/stage.h"

namespace cairn::sample {

namespace {

void min_p(Candidates& candidates, const SamplingParams& params) {
  if (params.min_p > 0) {
    candidates.keep_from(candidates.max_logit() + elementary::log(params.min_p));
  }
}

}  // namespace

extern const SamplerStage sampler_min_p;
constinit const SamplerStage sampler_min_p{.name = "min_p", .apply = min_p};

}  // namespace cairn::sample
