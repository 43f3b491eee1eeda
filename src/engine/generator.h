// A lane that is computed alone: reads prompts and continues them token by token; each call returns
// when it is done. Several generators may share an engine. Not thread-safe: the engine's thread
// owns it. Must not outlive its engine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/lane_batch.h"

namespace cairn {

struct ReadOptions {
  // Positions of the prompt at which messages begin, ascending: where people edit and branch.
  std::span<const int32_t> message_starts = {};
  // Called after each step with the tokens done and the tokens in all; returning false stops with
  // the error `cancelled`, and keeps what was read so far.
  std::function<bool(int32_t, int32_t)> on_progress = {};
};

class Generator : public Lane {
 public:
  explicit Generator(Engine* engine) : Lane(engine), batch_(engine) {}

  // Brings the sequence to exactly `prompt`, so that sample() can follow. Errors: those of
  // Lane::start() and Engine::step(); cancelled.
  Result<PromptReport> read(std::span<const Token> prompt, const ReadOptions& options = {});
  // Adds a token (usually the sampled one) and computes what follows it. Errors: those of
  // Lane::push() and Engine::step().
  Status advance(Token token);

 private:
  LaneBatch batch_;
};

}  // namespace cairn
