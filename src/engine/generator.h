// A lane that is computed alone: reads prompts and continues them token by token; each call returns
// when it is done. Several generators may share an engine. Not thread-safe: the engine's thread
// owns it. Must not outlive its engine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/lane.h"

namespace cairn {

struct ReadOptions {
  // Positions of the prompt at which messages begin, ascending: where people edit and branch.
  std::span<const int32_t> message_starts = {};
  // Called after each step with the tokens done and the tokens in all; returning false stops with
  // the error `cancelled`, and keeps what was read so far.
  std::function<bool(int32_t, int32_t)> on_progress = {};
};

class Generator {
 public:
  explicit Generator(Engine* engine) : lane_(engine), batch_(engine) {}

  // As in Lane.
  void select(Selection selection) { lane_.select(std::move(selection)); }
  const Selection& selection() const { return lane_.selection(); }
  memory::ResumePlan plan(std::span<const Token> prompt, bool wants_logits = true) const {
    return lane_.plan(prompt, wants_logits);
  }
  Result<Token> sample(sample::Sampler& sampler, const sample::TokenMask* allowed = nullptr) {
    return lane_.sample(sampler, allowed);
  }
  Status finish_turn() { return lane_.finish_turn(); }
  std::span<const float> logits() const { return lane_.logits(); }
  const memory::Sequence& sequence() const { return lane_.sequence(); }
  int32_t room() const { return lane_.room(); }
  int32_t left_out_tokens() const { return lane_.left_out_tokens(); }
  Lane& lane() { return lane_; }

  // Brings the sequence to exactly `prompt`, so that sample() can follow. Errors: those of
  // Lane::start() and Engine::step(); cancelled.
  Result<PromptReport> read(std::span<const Token> prompt, const ReadOptions& options = {});
  // Adds a token (usually the sampled one) and computes what follows it. Errors: those of
  // Lane::push() and Engine::step().
  Status advance(Token token);

 private:
  Lane lane_;
  LaneBatch batch_;
};

}  // namespace cairn
