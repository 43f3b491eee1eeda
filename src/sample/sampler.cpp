// The chain and the choice.
#include "sample/sampler.h"

#include <algorithm>
#include <limits>

#include "sample/noise.h"

namespace cairn::sample {

namespace {

// Cutting before the temperature: top_p and min_p then mean the model's own probabilities.
constexpr std::string_view kOrder[] = {"top_k", "top_p", "min_p", "temperature"};

const SamplerStage* stage_named(std::string_view name) {
  const auto stages = all_stages();
  const auto at = std::find_if(stages.begin(), stages.end(),
                               [name](const SamplerStage* stage) { return stage->name == name; });
  CHECK(at != stages.end());
  return *at;
}

}  // namespace

Sampler::Sampler(const SamplingParams& params) : params_(params) {
  for (const std::string_view name : kOrder) chain_.push_back(stage_named(name));
}

Result<Token> Sampler::sample(std::span<const float> logits, int32_t position) {
  const bool greedy = !(params_.temperature > 0);
  if (greedy) {
    const Token token = likeliest(logits);
    if (token != Token(-1)) return token;
  } else {
    candidates_.reset(logits);
    if (!candidates_.empty()) {
      for (const SamplerStage* stage : chain_) stage->apply(candidates_, params_);
      const auto kept = candidates_.list();
      return choose(kept, candidates_.max_logit(), position);
    }
  }
  return fail(ErrorCode::invalid_data,
              "the model's output: expected at least one logit that is a number, found {} NaN or "
              "-infinity",
              logits.size());
}

Token Sampler::choose(std::span<const Candidate> candidates, float max_logit,
                      int32_t position) const {
  // Behind this line no noise can help, and most of a large vocabulary lies behind it.
  const float floor = max_logit - (kNoiseMax - kNoiseMin);
  Token best = Token(-1);
  float best_score = -std::numeric_limits<float>::infinity();
  for (const Candidate& c : candidates) {
    if (c.logit < floor) continue;
    const float score =
        c.logit + gumbel_noise(params_.seed, position, NoiseStream::choice, c.token);
    if (score > best_score || (score == best_score && c.token < best)) {
      best = c.token;
      best_score = score;
    }
  }
  return best;
}

}  // namespace cairn::sample
