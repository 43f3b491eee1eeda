// Keeps the fewest tokens whose surprise is nearest to what is expected, the entropy, and that
// together have probability typical_p (Meister et al., "Locally Typical Sampling", 2022).
#include "base/elementary.h"
#include "sample/stage.h"

namespace cairn::sample {

namespace {

bool is_on(const SamplingParams& params) {
  return params.typical_p < 1;
}

// With Z the total and m the largest logit, -log p(x) = log Z + m - x, and the entropy is log Z
// less the mean of x - m. The difference vanishes where x is the mean logit, by probability.
void apply(Candidates& candidates, StageContext& context) {
  const ExpSums sums = candidates.exp_sums();
  const float center = float(double(candidates.max_logit()) + sums.weighted / sums.total);
  candidates.keep_nearest(center, context.params.typical_p, size_t(context.params.min_keep));
}

}  // namespace

extern const SamplerStage sampler_typ_p;
constinit const SamplerStage sampler_typ_p{
    .name = "typ_p", .letter = 'y', .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
