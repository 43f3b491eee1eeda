// Makes tokens that were among the last ones less likely: a factor for having been there (Keskar et
// al., 2019, for negative logits the other way round), an amount for having been there, and an
// amount for each time.
#include <algorithm>

#include "sample/stage.h"

namespace cairn::sample {

namespace {

bool is_on(const SamplingParams& params) {
  return params.repeat_last_count != 0 &&
         (params.repeat_penalty != 1 || params.frequency_penalty != 0 ||
          params.presence_penalty != 0);
}

void apply(Candidates& candidates, StageContext& context) {
  const SamplingParams& params = context.params;
  const auto last = last_tokens(context.history, params.repeat_last_count);
  std::vector<Token> tokens(last.begin(), last.end());
  std::sort(tokens.begin(), tokens.end());
  std::vector<int32_t> counts;
  size_t kept = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (kept > 0 && tokens[kept - 1] == tokens[i]) {
      ++counts.back();
    } else {
      tokens[kept++] = tokens[i];
      counts.push_back(1);
    }
  }
  tokens.resize(kept);
  candidates.change(tokens, [&](size_t i, float logit) {
    const float scaled = logit <= 0 ? logit * params.repeat_penalty : logit / params.repeat_penalty;
    return scaled - (float(counts[i]) * params.frequency_penalty + params.presence_penalty);
  });
}

}  // namespace

extern const SamplerStage sampler_penalties;
constinit const SamplerStage sampler_penalties{
    .name = "penalties", .letter = 'e', .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
