// Log-probabilities as differences of logits.
#include "sample/log_probabilities.h"

#include <limits>

#include "base/elementary.h"

namespace cairn::sample {

LogProbabilities log_probabilities(Candidates& candidates, Token chosen, size_t top_count) {
  LogProbabilities result;
  // log p = (x - largest) - log(sum of e^(x - largest))
  const float largest = candidates.max_logit();
  const float log_total = elementary::log(float(candidates.exp_sums().total));
  const auto of = [&](Token token, float logit) {
    return TokenProbability{token, (logit - largest) - log_total};
  };
  const std::optional<float> logit = candidates.logit_of(chosen);
  result.chosen = logit ? of(chosen, *logit)
                        : TokenProbability{chosen, -std::numeric_limits<float>::infinity()};
  if (top_count == 0) return result;
  for (const Candidate& c : candidates.top(top_count)) result.top.push_back(of(c.token, c.logit));
  return result;
}

LogProbabilities log_probabilities(std::span<const float> logits, Token chosen, size_t top_count) {
  Candidates candidates;
  candidates.reset(logits);
  return log_probabilities(candidates, chosen, top_count);
}

}  // namespace cairn::sample
