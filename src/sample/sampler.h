// Samples a token from logits by the chain of stages and Gumbel noise keyed by (seed, position,
// token), so that the same text is sampled again after a rewind, whatever was computed in between
// (docs/sampling.md). What depends on earlier tokens (penalties, DRY) reads them from the
// sequence; what depends on earlier choices is kept by position (sample/state.h). Thread rule: one
// thread; two Samplers with equal parameters and states choose alike.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "sample/candidates.h"
#include "sample/log_probabilities.h"
#include "sample/params.h"
#include "sample/stage.h"

namespace cairn::sample {

struct SampleInput {
  std::span<const float> logits;        // One for each token of the vocabulary.
  int32_t position = 0;                 // Of the token to be chosen.
  std::span<const Token> history = {};  // The tokens before it: all from position 0 on, or none.
  const TokenMask* allowed = nullptr;   // Null: all tokens.
};

class Sampler {
 public:
  // Whether some of the parameters contain text, which needs a tokenizer.
  static bool needs_tokenizer(const SamplingParams& params);

  // REQUIRES: a tokenizer, which must outlive the sampler, where needs_tokenizer().
  explicit Sampler(const SamplingParams& params, const tokenize::Tokenizer* tokenizer = nullptr);

  const SamplingParams& params() const { return params_; }

  // NaN and -infinity have no probability. Errors: invalid_data when no allowed token has one.
  Result<Token> sample(const SampleInput& input);
  Result<Token> sample(std::span<const float> logits, int32_t position,
                       const TokenMask* allowed = nullptr) {
    return sample({.logits = logits, .position = position, .allowed = allowed});
  }

  // Of the token that sample() chose last from `logits`, and the likeliest: as many as the
  // parameters ask for, before or after the chain as they say. REQUIRES: sample() succeeded, and
  // the logits are as they were.
  LogProbabilities probabilities();

  // What stages remember of the tokens that were chosen; for snapshots.
  const SamplerState& state() const { return state_; }
  void set_state(SamplerState state) { state_ = std::move(state); }

 private:
  void collect_biases(const tokenize::Tokenizer* tokenizer);
  void build_chain();
  Token choose(int32_t position);

  SamplingParams params_;
  const tokenize::Tokenizer* tokenizer_;
  std::shared_ptr<const DryBreakers> breakers_;
  std::vector<const SamplerStage*> chain_;  // Those that are on.
  const SamplerStage* learner_ = nullptr;   // The one of them with a memory.
  std::vector<Token> biased_;               // Ascending.
  std::vector<float> biases_;
  SamplerState state_;
  Candidates candidates_;
  std::span<const float> logits_;  // Of the last sample().
  Token chosen_ = Token(-1);
};

}  // namespace cairn::sample
