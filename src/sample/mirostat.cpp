// Keeps the surprise of the chosen tokens near mirostat_tau bits, by dropping more or fewer of the
// unlikely ones (Basu et al., "Mirostat", 2021). Version 1 guesses from the slope of the likeliest
// probabilities how many tokens to keep; version 2 drops those above a surprise. Replaces the
// chain.
#include <algorithm>
#include <cmath>

#include "base/elementary.h"
#include "sample/stage.h"

namespace cairn::sample {

namespace {

constexpr size_t kRanks = 100;  // What the slope is estimated from.
constexpr float kLn2 = 0.693147182f;

bool is_on(const SamplingParams& params) {
  return params.mirostat != 0;
}

float threshold(const StageContext& context) {
  return context.before != nullptr ? context.before->first : 2 * context.params.mirostat_tau;
}

// How many tokens have the surprise `mu` on average, were probabilities to fall as rank^-s.
size_t rank_for(Candidates& candidates, float mu) {
  const std::vector<Candidate> best = candidates.top(kRanks);
  float slopes = 0, squares = 0;
  for (size_t i = 0; i + 1 < best.size(); ++i) {
    const float step = elementary::log(float(i + 2) / float(i + 1));
    slopes += step * (best[i].logit - best[i + 1].logit);
    squares += step * step;
  }
  const float exponent = squares > 0 ? slopes / squares : 1;
  const float excess = exponent - 1;
  const float vocabulary = float(candidates.vocabulary_count());
  const float above = excess * elementary::exp(mu * kLn2);
  const float below = 1 - elementary::exp(-excess * elementary::log(vocabulary));
  const float rank = elementary::exp(elementary::log(above / below) / exponent);
  if (!(rank >= 1)) return 1;  // Also NaN.
  return size_t(std::min(rank, vocabulary));
}

void apply(Candidates& candidates, StageContext& context) {
  const float mu = threshold(context);
  if (context.params.mirostat == 1) {
    candidates.keep_top(rank_for(candidates, mu));
  } else {
    const float log_total = elementary::log(float(candidates.exp_sums().total));
    candidates.keep_from(candidates.max_logit() + log_total - mu * kLn2, 0);
  }
}

void learn(Candidates& candidates, Token chosen, StageContext& context) {
  const float log_total = elementary::log(float(candidates.exp_sums().total));
  const float log_probability = *candidates.logit_of(chosen) - candidates.max_logit() - log_total;
  const float error = -log_probability / kLn2 - context.params.mirostat_tau;
  context.memory = {threshold(context) - context.params.mirostat_eta * error, 0};
}

}  // namespace

extern const SamplerStage sampler_mirostat;
constinit const SamplerStage sampler_mirostat{
    .name = "mirostat", .letter = 0, .is_on = is_on, .apply = apply, .learn = learn};

}  // namespace cairn::sample
