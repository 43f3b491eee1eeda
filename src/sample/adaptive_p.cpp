// Makes tokens likelier whose probability is near a target, which moves against the average of what
// was chosen lately (llama.cpp's adaptive-p, 2025). Always the last stage, wherever it is named.
#include <algorithm>

#include "base/elementary.h"
#include "sample/stage.h"

namespace cairn::sample {

namespace {

bool is_on(const SamplingParams& params) {
  return params.adaptive_target >= 0;
}

// The shape of the preference: its width in probability, its height and slope in logits.
constexpr float kWidth = 0.3f, kPeak = 5, kSlope = 10;

float wanted(const StageContext& context) {
  const float target = context.params.adaptive_target;
  if (context.before == nullptr) return target;
  const float average = context.before->first / context.before->second;
  return std::clamp(2 * target - average, 0.0f, 1.0f);
}

void apply(Candidates& candidates, StageContext& context) {
  const float total = float(candidates.exp_sums().total);
  const float best = candidates.max_logit();
  const float target = wanted(context);
  candidates.change_list([&](std::vector<Candidate>& list) {
    context.originals.clear();
    for (Candidate& c : list) {
      const float probability = elementary::exp(c.logit - best) / total;
      context.originals.push_back({c.token, probability});
      const float distance = elementary::abs(probability - target) / kWidth;
      c.logit = kPeak - kSlope * distance * distance / (1 + distance);
    }
  });
}

// The sums of probabilities and of weights, each step's share falling by `decay`; at first as if
// the target had always been met.
void learn(Candidates&, Token chosen, StageContext& context) {
  const float decay = context.params.adaptive_decay;
  const float start = 1 / (1 - decay);
  const StageMemory before = context.before != nullptr
                                 ? *context.before
                                 : StageMemory{context.params.adaptive_target * start, start};
  for (const Candidate& c : context.originals) {
    if (c.token != chosen) continue;
    context.memory = {c.logit + decay * before.first, 1 + decay * before.second};
  }
}

}  // namespace

extern const SamplerStage sampler_adaptive_p;
constinit const SamplerStage sampler_adaptive_p{
    .name = "adaptive_p", .letter = 'a', .is_on = is_on, .apply = apply, .learn = learn};

}  // namespace cairn::sample
