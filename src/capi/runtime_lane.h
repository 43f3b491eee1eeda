// A runtime's timeline as a source of tokens for answers. Thread rule: that of the timeline.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "engine/token_source.h"
#include "runtimes/timeline.h"

namespace cairn::capi {

class RuntimeLane final : public TokenSource {
 public:
  // `timeline` outlives it.
  RuntimeLane(runtimes::Timeline* timeline, int32_t context_tokens)
      : timeline_(timeline), context_tokens_(context_tokens) {}

  Result<PromptReport> start(std::span<const Token> prompt,
                             std::span<const int32_t> /*message_starts*/ = {}) override {
    timeline_->aim(prompt);
    const runtimes::Cost cost = timeline_->cost();
    return PromptReport{.prompt_tokens = int32_t(prompt.size()),
                        .reused_tokens = int32_t(cost.resume),
                        .computed_tokens = int32_t(cost.forward_tokens())};
  }
  bool wants_rows() const override { return !tokens().empty() && timeline_->logits().empty(); }
  int32_t length() const override { return int32_t(tokens().size()); }
  int32_t context_tokens() const override { return context_tokens_; }
  int32_t room() const override { return context_tokens_ - length(); }
  std::span<const float> logits() const override { return timeline_->logits(); }
  Result<Token> sample(sample::Sampler& sampler, const sample::TokenMask* allowed = nullptr,
                       std::span<const float> given = {}) override {
    return sampler.sample({.logits = given.empty() ? logits() : given,
                           .position = length(),
                           .history = tokens(),
                           .allowed = allowed});
  }
  Status push(Token token) override {
    timeline_->push(token);
    return Ok{};
  }
  Status finish_turn() override { return Ok{}; }

 private:
  std::span<const Token> tokens() const { return timeline_->history().tokens; }

  runtimes::Timeline* timeline_;
  int32_t context_tokens_;
};

}  // namespace cairn::capi
