// One timeline that reads prompts and continues them token by token. A prompt that shares a
// beginning with what the timeline already holds is read only from where they part.
// Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "engine/engine.h"
#include "memory/memory.h"
#include "sample/sampler.h"

namespace cairn {

struct PromptReport {
  int32_t prompt_tokens = 0;
  int32_t reused_tokens = 0;    // Held already.
  int32_t computed_tokens = 0;  // prompt_tokens - reused_tokens.
  memory::ResumePlan plan;      // Where the old timeline could be resumed, and what limited it.
};

class Generator {
 public:
  explicit Generator(Engine* engine);

  // Brings the timeline to exactly `prompt` (not empty), so that next() can follow. `on_progress`
  // is told (tokens done, tokens in all) after each step and may return false to stop: then the
  // error is `cancelled` and what was read so far is kept.
  Result<PromptReport> read(std::span<const Token> prompt,
                            const std::function<bool(int32_t, int32_t)>& on_progress = {});

  // Samples the token that follows the timeline, without adding it. Errors: the sampler's.
  // REQUIRES: read() succeeded.
  Result<Token> sample(sample::Sampler& sampler);
  // Adds a token (usually the sampled one) and computes what follows it.
  Status advance(Token token);

  std::span<const float> logits() const;  // Of the token that follows; [vocabulary].
  const memory::Sequence& sequence() const { return sequence_; }
  int32_t room() const;  // Tokens that still fit into the context.

 private:
  Result<memory::Transaction> begin(std::span<const Token> tokens,
                                    std::span<const int32_t> captures);
  Status limit_anchors(size_t count_max);
  Status compute(std::span<const Token> tokens, bool last_step);

  Engine* engine_;
  memory::Sequence sequence_;
};

}  // namespace cairn
