// What the engine's thread has of a conversation, and the jobs that change it: reading tokens, and
// making an answer. One job at a time. Thread rule: the engine's thread, but for making jobs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "capi/mailbox.h"
#include "capi/objects.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/schedule/job.h"
#include "grammar/matcher.h"
#include "sample/params.h"
#include "sample/state.h"
#include "session/completion.h"
#include "session/constraint.h"
#include "session/receipt.h"

namespace cairn::capi {

// How answers are made, whichever comes next.
struct AnswerTerms {
  sample::SamplingParams sampling;
  int32_t token_count_max = -1;
  std::vector<std::string> stop;
  session::ConstraintChoice form;
  std::shared_ptr<grammar::Matcher> matcher;  // Of the form; null: anything.
  bool wants_receipt = false;
};

class Timeline {
 public:
  explicit Timeline(Engine* engine) : engine_(engine), lane_(std::in_place, engine) {}

  Engine& engine() { return *engine_; }
  Lane& lane() { return *lane_; }
  session::Completion* completion() { return completion_.get(); }  // Null: no answer is made.
  // What the sampler remembers.
  const sample::SamplerState& sampler() const {
    return completion_ != nullptr ? completion_->sampler_state() : sampler_;
  }
  // REQUIRES: no answer is made.
  void set_sampler(sample::SamplerState state) { sampler_ = std::move(state); }

  // All of so many tokens are computed, and the logits behind them are there.
  bool stands_at(size_t token_count) const;
  // To what the sequence has: computes nothing where it was computed by this engine.
  void go_to(const memory::Sequence& sequence);
  // What was computed goes to the engine's cache.
  void clear();
  void drop_answer();

  Status begin_answer(std::span<const Token> prompt, std::shared_ptr<const AnswerTerms> terms);
  // It has ended. Errors: those of Completion::finish().
  Result<session::FinishReason> end_answer();
  // What is new of it.
  AnswerEvent take_event();
  // Of the last answer that has ended; null where its terms wanted none.
  std::shared_ptr<const session::Receipt> receipt() const { return receipt_; }
  void drop_receipt() { receipt_.reset(); }
  // A job has ended in the middle of it: all rows that were given up are wanted again.
  void pause_answer();

 private:
  Engine* engine_;
  std::optional<Lane> lane_;
  std::shared_ptr<const AnswerTerms> terms_;  // Of the answer.
  std::unique_ptr<session::ReceiptDraft> draft_;
  std::unique_ptr<session::Completion> completion_;
  std::shared_ptr<const session::Receipt> receipt_;
  sample::SamplerState sampler_;
};

// Makes the tokens the timeline's. `done` is its plan, once it has ended well.
class ReadJob final : public Job {
 public:
  // All outlive it. `from`: what has them in memory, too; null: nothing.
  ReadJob(Timeline* timeline, Mailbox* mailbox, std::span<const Token> tokens,
          const SnapshotObject* from, memory::ResumePlan* done)
      : timeline_(timeline), mailbox_(mailbox), tokens_(tokens), from_(from), done_(done) {}

  Lane* lane() override { return &timeline_->lane(); }
  memory::Variant variant() const override { return timeline_->lane().selection().variant(); }
  std::span<const Token> prompt() const override { return tokens_; }
  memory::ResumePlan plan() override;
  Status start() override;
  Status advance() override;
  bool is_done() const override { return is_done_; }
  void end(Status status) override;

 private:
  Timeline* timeline_;
  Mailbox* mailbox_;
  std::span<const Token> tokens_;
  const SnapshotObject* from_;
  memory::ResumePlan* done_;
  memory::Sequence before_;
  bool has_started_ = false, is_done_ = false;
};

// Makes an answer, or goes on with it.
class MakeJob final : public Job {
 public:
  enum class Extent : uint8_t {
    rows,    // What is pending is computed, and no token is chosen.
    token,   // One token.
    to_end,  // All of them.
  };
  struct Order {
    Extent extent = Extent::token;
    std::vector<Token> prompt = {};  // Empty: the answer that there is goes on.
    std::shared_ptr<const AnswerTerms> terms = {};
    uint64_t handle = 0;             // Whose mark ends it.
    std::vector<float> logits = {};  // What the first token is chosen from; empty: the lane's.
  };

  // Both outlive it.
  MakeJob(Timeline* timeline, Mailbox* mailbox, Order order)
      : timeline_(timeline), mailbox_(mailbox), order_(std::move(order)) {}

  Lane* lane() override { return &timeline_->lane(); }
  memory::Variant variant() const override { return timeline_->lane().selection().variant(); }
  std::span<const Token> prompt() const override { return order_.prompt; }
  memory::ResumePlan plan() override;
  Status start() override;
  void choose() override;
  bool chooses_alone() const override;
  Status advance() override;
  Status take_step(Status stepped) override;
  bool is_done() const override;
  bool is_blocked() const override;
  void end(Status status) override;

 private:
  void give_logits();

  Timeline* timeline_;
  Mailbox* mailbox_;
  Order order_;
  bool has_gone_on_ = false;
};

}  // namespace cairn::capi
