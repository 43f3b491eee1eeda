// One sequence that is being generated: a prompt, then token after token. A lane requests rows of
// the next step and gets their outputs; it computes nothing by itself, so that many lanes can share
// steps. Only what follows the longest cached prefix of a prompt is computed, with the same bits as
// without a cache. Thread rule: the engine's thread. Must not outlive its engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/context_cut.h"
#include "engine/engine.h"
#include "engine/lane_report.h"
#include "engine/step.h"
#include "engine/token_source.h"
#include "memory/memory.h"
#include "sample/sampler.h"

namespace cairn {

class Lane : public TokenSource {
 public:
  explicit Lane(Engine* engine);

  // Uses these adapters from now on; before, the engine's default ones. The sequence so far goes to
  // the prefix cache; the next prompt can only resume from sequences of the new adapters.
  void select(Selection selection);
  const Selection& selection() const { return selection_; }

  void compute_all() { computes_all_ = true; }  // Reuses nothing from now on, of cache and store.
  // Hands all logits of the prompt that is started next to `reader`, which must stay until it is
  // read. Memory does not keep logits: nothing of it is reused, and steps have few rows.
  void read_logits(PromptReader* reader);
  bool reuses_prefixes() const { return !computes_all_ && reader_ == nullptr; }
  // Begins to read `prompt` (not empty), from its longest cached prefix. `message_starts`:
  // positions of the prompt at which messages of the user begin, ascending; the sequence can go
  // back to them without computing tokens again, and shifts of the context leave out whole turns.
  // Errors: invalid_argument for ids outside the vocabulary; context_full if the prompt is longer
  // than the context and the policy is to stop.
  Result<PromptReport> start(std::span<const Token> prompt,
                             std::span<const int32_t> message_starts = {}) override;
  // What going back to what memory holds of the prompt costs; with `wants_logits` false: without
  // the logits at its end, for a prompt that more tokens will follow.
  memory::ResumePlan plan(std::span<const Token> prompt,
                          std::span<const int32_t> message_starts = {},
                          bool wants_logits = true) const;
  // The same up to the prompt's end: what start() and all its steps cost.
  memory::ResumePlan plan_reading(std::span<const Token> prompt,
                                  std::span<const int32_t> message_starts = {},
                                  bool wants_logits = true) const;
  // Looks in the store for what memory lacks of this prompt, which start() is going to read, or of
  // the tokens that resume() is: the same look-up at every call until then. Null: there is no
  // store. Where it was not called, start() and resume() wait for the store themselves.
  StoredPrefix* look_up(std::span<const Token> prompt,
                        std::span<const int32_t> message_starts = {});
  StoredPrefix* look_up_again();
  // Begins to read what was found. REQUIRES: it is found.
  void read_found(bool spares_shares) { stored_->read(spares_shares); }
  // That look-up, while its blocks are being read; else null.
  const StoredPrefix* read_stored() const;
  // Gives up the look-up; look_up() makes another one.
  void forget_stored() { stored_.reset(); }
  // What start() and all its steps cost with what was found, without the blocks that were taken by
  // now. REQUIRES: it is found or being read.
  memory::ResumePlan plan_stored(const StoredPrefix& stored) const;
  // Adds a token (usually the sampled one). If the context is full and the policy is to shift, the
  // sequence is shortened, and what stays is pending again. Errors: those of start(). REQUIRES:
  // !wants_rows().
  Status push(Token token) override;
  // What push() does once room() tokens were added; nothing where the policy is to stop.
  std::optional<ContextShift> next_shift() const;

  bool wants_rows() const override { return next_ < pending_.size(); }
  int32_t wanted_rows() const;  // Of the next step, at most.
  // They are of a prompt, or of tokens that are read again; else the answer's next token waits for
  // them.
  bool is_reading() const { return reads_prompt_ || is_preempted_ || wanted_rows() > 1; }
  LaneDemand demand() const;
  // The next rows, at most `row_count_max`; their logits where they end the prompt or answer.
  // REQUIRES: wants_rows(); row_count_max > 0.
  StepItem next(int32_t row_count_max);
  // In a step's acceptor: keeps where the outputs are; returns how many tokens the item had,
  // without drafts.
  int32_t take(const StepOutputs& outputs);

  // Drafts: tokens that may follow the one whose row is wanted. The next item has them behind it,
  // as far as its rows go. In place of take(), the acceptor then walks along them: logits(),
  // sample() and room() are those behind the first row, and behind one draft more with each
  // confirm_draft().
  // More rows of one sequence cost about what they would cost one by one.
  static constexpr int32_t kDraftsMax = 63;
  int32_t draft_count_max() const;  // That the next step can check.
  // REQUIRES: wants_rows(); !is_reading(); at most draft_count_max().
  void draft(std::span<const Token> tokens);
  bool has_drafted() const { return !drafts_.item.empty(); }  // The last item.
  void begin_walk(const StepOutputs& outputs);
  std::optional<Token> next_draft() const;  // None: its row was not computed.
  void confirm_draft();
  int32_t end_walk();  // How many tokens of the item become part of the sequence.
  // All tokens, whatever was shifted, with those that wait; kept from the first call on. REQUIRES:
  // !is_reading().
  std::span<const Token> whole_text();

  // After the step: keeps and drops what the sequence needs. Errors: those of the memory.
  Status settle();

  std::span<const float> logits() const override;
  // The noise's key is the position in the whole text, and penalties see all of it, whatever was
  // shifted.
  Result<Token> sample(sample::Sampler& sampler, const sample::TokenMask* allowed = nullptr,
                       std::span<const float> given = {}) override;
  int32_t prompt_end() const { return prompt_end_; }  // Of the prompt that was started last.
  // How many tokens of `prompt` this lane has in memory or is going to read before others: other
  // lanes need not compute these too.
  int32_t planned_prefix(std::span<const Token> prompt) const;
  // Another lane will go on otherwise behind so many tokens: reading them leaves an anchor there.
  void expect_branch(int32_t position);
  // Lets other lanes resume from what is computed so far.
  void publish() { engine_->cache().keep(sequence_); }
  // Gives all pages and states to the prefix cache, where they can be evicted; the lane then wants
  // to read all of its tokens again. resume() finds what is still there.
  void preempt();
  bool is_preempted() const { return is_preempted_; }
  // What resume() and its steps cost.
  memory::ResumePlan resume_plan() const;
  Status resume();

  // This lane or another can continue from here.
  Status finish_turn() override;

  const memory::Sequence& sequence() const { return sequence_; }
  int32_t context_tokens() const override { return engine_->options().context_tokens; }
  int32_t length() const override { return sequence_.length(); }
  int32_t room() const override;  // At least 1 with the shift policy.
  int32_t left_out_tokens() const override { return cut_.left_out; }
  int32_t left_out_turns() const override { return cut_.turns; }

 private:
  struct Start;
  Status check(std::span<const Token> prompt) const;
  ContextLimits limits() const;
  Result<ContextCut> find_cut(int64_t token_count, std::span<const int32_t> turn_starts) const;
  Result<PromptReport> start_cut(std::span<const Token> text, bool asks_store);
  Result<PromptReport> start_whole(std::span<const Token> prompt, bool asks_store);
  Result<PromptReport> read_from_best(std::span<const Token> tokens, bool asks_store);
  bool resumes_everywhere() const;
  struct Mark {
    int32_t position;
    memory::AnchorKind kind;
  };
  void place_marks(int32_t prompt_tokens, int32_t branch);
  void add_mark(Mark mark);
  std::span<const Token> shortened(std::span<const Token> prompt,
                                   std::span<const int32_t> message_starts,
                                   std::vector<Token>& storage) const;
  StoredPrefix* look_up_whole(std::span<const Token> tokens);
  void wait_for_stored(std::span<const Token> tokens, PromptReport& report);
  Start find_start(std::span<const Token> prompt, bool wants_logits) const;
  Start find_best(std::span<const Token> prompt, bool wants_logits) const;
  memory::ResumePlan plan_whole(std::span<const Token> prompt, bool wants_logits) const;
  Status drop_anchors_of_earlier_turns();
  StepItem drafted_item(int32_t row_count_max);
  Status end_prompt();
  Status shift(Token token);
  std::span<const Token> text() const;

  Engine* engine_;
  Selection selection_;  // The sequence has its variant.
  memory::Sequence sequence_;
  std::vector<Token> pending_;  // Those before next_ are in the sequence already.
  size_t next_ = 0;
  std::vector<int32_t> message_starts_;  // Of the prompt that is being read, as far as it stays.
  std::vector<Mark> marks_;              // Where reading it leaves anchors, ascending.
  bool reads_prompt_ = false;            // Else a token after it.
  int32_t resumed_at_ = 0;               // Where reading the prompt began.
  int32_t prompt_end_ = 0;               // Where it ends.
  bool is_preempted_ = false;            // All tokens are pending, and the sequence is empty.
  bool computes_all_ = false;
  std::unique_ptr<StoredPrefix> stored_;  // Of what is read next.
  ContextCut cut_;                        // What the sequence lacks of the text.
  // The whole text, where some is left out or somebody has asked for it; else empty.
  std::vector<Token> text_;
  std::vector<int32_t> turn_starts_;  // Its messages of the user.
  PromptReader* reader_ = nullptr;    // Of the prompt that is read, or will be.
  int32_t handed_out_ = 0;            // Of its tokens, those whose logits the reader has had.
  // Of the item that was handed out.
  std::vector<int32_t> outputs_, captures_;
  std::vector<memory::AnchorKind> capture_kinds_;
  int32_t item_tokens_ = 0;  // Without drafts.
  LaneDrafts drafts_;
  // The index of the last token's output in the runner, and the runner's count at that step.
  mutable int32_t output_ = 0;
  mutable int64_t computed_at_ = -1;
};

}  // namespace cairn
