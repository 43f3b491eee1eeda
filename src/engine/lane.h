// One sequence on its way: a prompt, then token after token behind it. A lane says what it wants of
// the next step and is given the rows; it computes nothing by itself, so that many lanes can share
// steps. A prompt is read only from where it parts from what is already held, by this lane or in
// the engine's cache; what comes out has the bits of a fresh reading.
// Not thread-safe: the engine's thread owns it. Must not outlive its engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/step.h"
#include "memory/memory.h"
#include "sample/sampler.h"

namespace cairn {

struct PromptReport {
  int32_t prompt_tokens = 0;    // Of what was read: without those that were left out.
  int32_t reused_tokens = 0;    // Held already.
  int32_t computed_tokens = 0;  // prompt_tokens - reused_tokens.
  int32_t left_out_tokens = 0;  // By the policy for full contexts, from behind the first kept ones.
  bool from_cache = false;      // Another sequence than the lane's own held more.
  memory::ResumePlan plan;      // Where the sequence could be resumed, and what limited it: as
                                // memory::ResumePlan says, or "adapters", if others made more.
};

// What a lane would take of a step that computes all that it waits for.
struct LaneDemand {
  int32_t rows = 0;         // Tokens to compute.
  int32_t outputs = 0;      // Rows of logits.
  int32_t replay_rows = 0;  // Recurrence steps before them; no weights are read for these.
  size_t new_bytes = 0;     // At most: pages and states taken for them.
};

class Lane {
 public:
  explicit Lane(Engine* engine);

  // From now on by these adapters, which the engine has selected; until then by its usual ones. The
  // sequence so far goes to the engine's cache, for whoever asks for it by the same adapters; the
  // next prompt is read by these, from where others were read by them before.
  void select(Selection selection);
  const Selection& selection() const { return selection_; }

  // Sets out to bring the sequence to exactly `prompt` (not empty), from where the fewest of its
  // tokens have to be read. `message_starts`: positions of the prompt at which messages begin,
  // ascending; the sequence can go back to them at no cost. Errors: invalid_argument for ids
  // outside the vocabulary; no_room where the prompt is longer than the context and no policy says
  // what to leave out, or where the memory budget is too small.
  Result<PromptReport> start(std::span<const Token> prompt,
                             std::span<const int32_t> message_starts = {});
  // What start() and the steps behind it would cost; without logits: what going on behind the
  // prompt would cost, where more tokens are to follow it.
  memory::ResumePlan plan(std::span<const Token> prompt, bool wants_logits = true) const;
  // Adds a token (usually the sampled one). Where the context is full and the policy is to shift,
  // the sequence is shortened, and what stays waits to be read again. Errors: those of start().
  // REQUIRES: !wants_rows().
  Status push(Token token);

  // Tokens wait to be computed.
  bool wants_rows() const { return next_ < pending_.size(); }
  LaneDemand demand() const;
  // The next rows, at most `row_count_max`; their logits where they end the prompt or answer.
  // REQUIRES: wants_rows(); row_count_max > 0.
  StepItem next(int32_t row_count_max);
  // In a step's acceptor: keeps where the outputs are; returns how many tokens the item had.
  int32_t take(const StepOutputs& outputs);
  // Behind the step: what is kept of the sequence. Errors: those of the memory.
  Status settle();

  // Of the token that follows; [vocabulary]. REQUIRES: something was read; !wants_rows().
  std::span<const float> logits() const;
  // Samples the token that follows, without adding it; where there is a mask, only tokens that it
  // has. The noise's key is the token's position in the whole text, and penalties see all of that,
  // so that a shift of the context changes neither. Errors: the sampler's. REQUIRES: those of
  // logits().
  Result<Token> sample(sample::Sampler& sampler, const sample::TokenMask* allowed = nullptr);
  // The answer is at its end: the sequence can be gone on from here, by this lane or another.
  Status finish_turn();

  const memory::Sequence& sequence() const { return sequence_; }
  int32_t room() const;  // Tokens that still fit into the context; shifting always makes some.
  // Of the text since the last start(): by its policy for full contexts, and by shifts.
  int32_t left_out_tokens() const { return left_out_tokens_; }

 private:
  struct Start;
  Status check(std::span<const Token> prompt) const;
  Result<int32_t> tokens_to_leave_out(int64_t token_count) const;
  std::vector<Token> without(std::span<const Token> tokens, int32_t left_out) const;
  Result<PromptReport> start_whole(std::span<const Token> prompt);
  Start find_start(std::span<const Token> prompt, bool wants_logits) const;
  Status drop_anchors_of_earlier_turns();
  Status end_prompt();
  Status shift(Token token);
  std::span<const Token> text() const;

  Engine* engine_;
  Selection selection_;  // The sequence is of its variant.
  memory::Sequence sequence_;
  std::vector<Token> pending_;  // Behind the sequence, those before next_ are in it.
  size_t next_ = 0;
  std::vector<int32_t> message_starts_;  // Of the prompt that is being read.
  bool reads_prompt_ = false;            // Else a token behind it.
  int32_t resumed_at_ = 0;               // Where reading the prompt began.
  int32_t left_out_tokens_ = 0;
  std::vector<Token> text_;  // The whole text, where some of it was left out; else empty.
  // Of the item that was handed out.
  std::vector<int32_t> captures_;
  int32_t item_tokens_ = 0, item_output_ = 0;
  // Which of the runner's outputs is the last token's, and the runner's count when it was.
  mutable int32_t output_ = 0;
  mutable int64_t computed_at_ = -1;
};

// Steps of lanes. Keeps its arrays, so that a step allocates nothing. Thread rule: that of a lane.
class LaneBatch {
 public:
  explicit LaneBatch(Engine* engine) : engine_(engine) {}

  // One step for those of the lanes that want rows, in their order, as far as there is room; how
  // many of these were computed. Errors: those of Engine::step() and Lane::settle().
  // REQUIRES: at least one of the lanes wants rows.
  Result<size_t> step(std::span<Lane* const> lanes);
  Status step(Lane& lane) {
    Lane* const one = &lane;
    CAIRN_TRY(step(std::span(&one, 1)));
    return Ok{};
  }

 private:
  Engine* engine_;
  std::vector<Lane*> stepped_;
  std::vector<StepItem> items_;
};

}  // namespace cairn
