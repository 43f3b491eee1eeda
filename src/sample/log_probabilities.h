// Log-probabilities of the sampled token and of the likeliest ones, by one pass over all logits.
// Thread-safe: pure.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "sample/candidates.h"

namespace cairn::sample {

struct TokenProbability {
  Token token = Token(-1);
  float log_probability = 0;  // -infinity where it cannot be chosen.
};

struct LogProbabilities {
  TokenProbability chosen;
  std::vector<TokenProbability> top;  // Likeliest first, equal ones by id.
};

// By the softmax of the logits, before any sampler stage.
LogProbabilities log_probabilities(std::span<const float> logits, Token chosen, size_t top_count);
// By the softmax of the candidates after the sampler chain. REQUIRES: there are candidates.
LogProbabilities log_probabilities(Candidates& candidates, Token chosen, size_t top_count);

}  // namespace cairn::sample
