// One timeline that reads prompts and continues them token by token. A prompt is read only from
// where it parts from what is already held, by this timeline or by one that the engine keeps; what
// comes out has the bits of a fresh reading. Several generators may share an engine.
// Not thread-safe: the engine's thread owns it. Must not outlive its engine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "memory/memory.h"
#include "sample/sampler.h"

namespace cairn {

struct ReadOptions {
  // Positions of the prompt at which messages begin, ascending: where people edit and branch. The
  // timeline can go back to them at no cost of reading.
  std::span<const int32_t> message_starts = {};
  // Told (tokens done, tokens in all) after each step; may return false to stop: then the error is
  // `cancelled`, and what was read so far is kept.
  std::function<bool(int32_t, int32_t)> on_progress = {};
};

struct PromptReport {
  int32_t prompt_tokens = 0;    // Of what was read: without those that were left out.
  int32_t reused_tokens = 0;    // Held already.
  int32_t computed_tokens = 0;  // prompt_tokens - reused_tokens.
  int32_t left_out_tokens = 0;  // By the policy for full contexts, from behind the first kept ones.
  bool from_cache = false;      // Another timeline than the generator's own held more.
  memory::ResumePlan plan;      // Where the timeline could be resumed, and what limited it: as
                                // memory::ResumePlan says, or "adapters", if others made more.
};

class Generator {
 public:
  explicit Generator(Engine* engine);

  // From now on by these adapters, which the engine has selected; until then by its usual ones. The
  // timeline so far goes to the engine's cache, for whoever asks for it by the same adapters; the
  // next prompt is read by these, from where others were read by them before.
  void select(Selection selection);
  const Selection& selection() const { return selection_; }

  // Brings the timeline to exactly `prompt` (not empty), so that sample() can follow. Errors:
  // no_room where the prompt is longer than the context and no policy says what to leave out, or
  // where the memory budget is too small; cancelled.
  Result<PromptReport> read(std::span<const Token> prompt, const ReadOptions& options = {});

  // What read() would cost; without logits: what going on behind the prompt would cost, where more
  // tokens are to follow it.
  memory::ResumePlan plan(std::span<const Token> prompt, bool wants_logits = true) const;
  // The first part of read() alone: takes up the prompt where the fewest of its tokens have to be
  // read, and computes nothing. Errors: no_room.
  Result<PromptReport> resume(std::span<const Token> prompt);

  // Samples the token that follows the timeline, without adding it; where there is a mask, only
  // tokens that it has. Errors: the sampler's. REQUIRES: read() succeeded.
  Result<Token> sample(sample::Sampler& sampler, const sample::TokenMask* allowed = nullptr);
  // Adds a token (usually the sampled one) and computes what follows it. Where the context is full
  // and the policy is to shift, the timeline is shortened and read anew first.
  Status advance(Token token);
  // The answer is at its end: the timeline can be gone on from here, by this generator or another.
  Status finish_turn();

  std::span<const float> logits() const;  // Of the token that follows; [vocabulary].
  const memory::Sequence& sequence() const { return sequence_; }
  int32_t room() const;  // Tokens that still fit into the context; shifting always makes some.
  int32_t left_out_tokens() const { return left_out_tokens_; }  // By shifts since the last read().

 private:
  Status check(std::span<const Token> prompt) const;
  Result<int32_t> tokens_to_leave_out(int64_t token_count) const;
  std::vector<Token> without(std::span<const Token> tokens, int32_t left_out) const;
  Result<PromptReport> read_whole(std::span<const Token> prompt, const ReadOptions& options);
  struct Start;
  Start find_start(std::span<const Token> prompt, bool wants_logits) const;
  Status replay_if_needed();
  Status drop_anchors_of_earlier_turns();
  Result<memory::Transaction> begin(memory::StepRequest request);
  Status append(std::span<const Token> tokens, std::span<const int32_t> captures,
                bool keeps_hidden);
  Status end_prompt(std::span<const int32_t> message_starts);
  Status shift(Token token);

  Engine* engine_;
  Selection selection_;  // The sequence is of its variant.
  memory::Sequence sequence_;
  mutable int64_t computed_at_ = -1;  // The runner's count when it last computed for this timeline.
  int32_t left_out_tokens_ = 0;
};

}  // namespace cairn
