// Divides the logits: below 1 the likely become likelier, above 1 the unlikely gain.
#include "sample/stage.h"

namespace cairn::sample {

namespace {

void temperature(Candidates& candidates, const SamplingParams& params) {
  candidates.divide(params.temperature);
}

}  // namespace

extern const SamplerStage sampler_temperature;
constinit const SamplerStage sampler_temperature{.name = "temperature", .apply = temperature};

}  // namespace cairn::sample
