// Chooses a token from logits: greedily, or by the chain of stages and Gumbel noise keyed by
// (seed, position, token), so that the same text is chosen again after a rewind, whatever was
// computed in between (docs/numerics.md, sampling).
// Thread rule: one thread; two Samplers with equal parameters choose alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "sample/candidates.h"
#include "sample/params.h"
#include "sample/stage.h"

namespace cairn::sample {

class Sampler {
 public:
  explicit Sampler(const SamplingParams& params);

  const SamplingParams& params() const { return params_; }

  // `logits`: one for each token of the vocabulary. `position`: of the token to be chosen.
  // NaN and -infinity have no probability. Errors: invalid_data when no logit has one.
  Result<Token> sample(std::span<const float> logits, int32_t position);

 private:
  Token choose(std::span<const Candidate> candidates, float max_logit, int32_t position) const;

  SamplingParams params_;
  std::vector<const SamplerStage*> chain_;
  Candidates candidates_;
};

}  // namespace cairn::sample
