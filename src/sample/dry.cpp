// DRY, "don't repeat yourself" (Weidmann, 2024): what would prolong a repetition of earlier tokens
// is made less likely, the more the longer it is already. Repetitions do not reach across breakers.
#include <algorithm>
#include <cfloat>

#include "sample/dry_breakers.h"
#include "sample/stage.h"

namespace cairn::sample {

namespace {

// lengths[k]: how many tokens before the place k tokens from the end equal the last tokens (the "Z
// function" of the reversed tokens; linear, since what is known to be equal is not compared again).
std::vector<size_t> repeated_lengths(std::span<const Token> tokens) {
  const size_t count = tokens.size();
  const auto back = [&](size_t k) { return tokens[count - 1 - k]; };
  std::vector<size_t> lengths(count, 0);
  size_t left = 0, right = 0;  // The stretch that reaches furthest: [left, right) equals [0, …).
  for (size_t k = 1; k < count; ++k) {
    if (k < right) lengths[k] = std::min(right - k, lengths[k - left]);
    while (k + lengths[k] < count && back(lengths[k]) == back(k + lengths[k])) ++lengths[k];
    if (k + lengths[k] > right) {
      left = k;
      right = k + lengths[k];
    }
  }
  return lengths;
}

// multiplier * base ^ exponent, at most the largest number.
float penalty(const SamplingParams& params, size_t exponent) {
  double power = 1, factor = params.dry_base >= 1 ? double(params.dry_base) : 1.75;
  for (; exponent != 0 && power <= double(FLT_MAX); exponent /= 2) {
    if (exponent % 2 != 0) power *= factor;
    factor *= factor;
  }
  return float(std::min(double(params.dry_multiplier) * power, double(FLT_MAX)));
}

bool is_on(const SamplingParams& params) {
  return params.dry_multiplier > 0 && params.dry_last_count != 0;
}

void apply(Candidates& candidates, StageContext& context) {
  const SamplingParams& params = context.params;
  const auto last = last_tokens(context.history, params.dry_last_count);
  const size_t allowed = size_t(params.dry_allowed_length);
  if (last.size() <= allowed) return;
  const size_t limit = context.breakers->repetition_limit(last);
  if (limit < allowed) return;
  // The repetition that each token would prolong, by token.
  std::vector<std::pair<Token, size_t>> prolonged;
  const std::vector<size_t> lengths = repeated_lengths(last);
  for (size_t back = 1; back < last.size(); ++back) {
    const size_t length = std::min(lengths[back], limit);
    const Token next = last[last.size() - back];
    if (length >= allowed && !context.breakers->is_breaker(next))
      prolonged.push_back({next, length});
  }
  std::sort(prolonged.begin(), prolonged.end());
  std::vector<Token> tokens;
  std::vector<size_t> longest;
  for (const auto& [token, length] : prolonged) {
    if (tokens.empty() || tokens.back() != token) {
      tokens.push_back(token);
      longest.push_back(length);
    }
    longest.back() = length;
  }
  candidates.change(
      tokens, [&](size_t i, float logit) { return logit - penalty(params, longest[i] - allowed); });
}

}  // namespace

extern const SamplerStage sampler_dry;
constinit const SamplerStage sampler_dry{
    .name = "dry", .letter = 'd', .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
