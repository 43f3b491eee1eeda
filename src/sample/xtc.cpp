// Leaves out, with probability xtc_probability, all tokens of at least xtc_threshold but the least
// likely of them: "exclude top choices" (Weidmann, 2024).
#include <algorithm>
#include <limits>

#include "base/elementary.h"
#include "base/philox.h"
#include "sample/noise.h"
#include "sample/stage.h"

namespace cairn::sample {

namespace {

bool is_on(const SamplingParams& params) {
  return params.xtc_probability > 0 && params.xtc_threshold <= 0.5f;
}

// Keyed like the choice itself, so that a rewind decides the same.
bool happens(const StageContext& context) {
  const uint64_t seed = context.params.seed;
  const auto words = philox4x32({0, uint32_t(context.position), uint32_t(NoiseStream::xtc), 0},
                                {uint32_t(seed), uint32_t(seed >> 32)});
  return unit_interval(words[0]) <= context.params.xtc_probability;
}

void apply(Candidates& candidates, StageContext& context) {
  const SamplingParams& params = context.params;
  if (!happens(context)) return;
  const double total = candidates.exp_sums().total;
  const float floor = candidates.max_logit() + elementary::log(float(params.xtc_threshold * total));
  const std::vector<Candidate> likely = candidates.at_least(floor);
  if (likely.size() < 2) return;
  const size_t left_out = likely.size() - 1;
  if (candidates.value_sums().count - left_out < size_t(params.min_keep)) return;
  std::vector<Token> tokens;
  for (size_t i = 0; i < left_out; ++i) tokens.push_back(likely[i].token);
  std::sort(tokens.begin(), tokens.end());
  candidates.change(tokens, [](size_t, float) { return -std::numeric_limits<float>::infinity(); });
}

}  // namespace

extern const SamplerStage sampler_xtc;
constinit const SamplerStage sampler_xtc{
    .name = "xtc", .letter = 'x', .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
