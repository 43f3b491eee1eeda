// What the engine's thread has of a conversation on the built-in engine, and the jobs that change
// it: reading tokens, and making an answer. One job at a time. Thread rule: the engine's thread,
// but for making jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "capi/answer_maker.h"
#include "capi/mailbox.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/schedule/job.h"
#include "session/drafts/drafting.h"

namespace cairn::capi {

class Timeline {
 public:
  // Both outlive it.
  Timeline(Engine* engine, session::Drafting* drafting)
      : engine_(engine), drafting_(drafting), lane_(std::in_place, engine) {}

  Engine& engine() { return *engine_; }
  Lane& lane() { return *lane_; }
  AnswerMaker& maker() { return maker_; }

  // All of so many tokens are computed, and the logits behind them are there.
  bool stands_at(size_t token_count) const;
  // To what the sequence has: computes nothing where it was computed by this engine.
  void go_to(const memory::Sequence& sequence);
  // What was computed goes to the engine's cache.
  void clear();
  // Errors: those of AnswerMaker::begin().
  Status begin_answer(std::span<const Token> prompt, std::shared_ptr<const AnswerTerms> terms);
  // Has the rest of the answer drafted. `prompt`: that of an answer which has just begun; empty: it
  // goes on. Nothing where memory has lost what it goes on from.
  void draft_answer(std::span<const Token> prompt);
  // What was said may help to draft what others say.
  void remember();
  // A job has ended in the midst of an answer: all rows that were given up are wanted again.
  void pause_answer();

 private:
  AnswerMaker::Computer computer() { return {engine_, &lane_->selection(), &*lane_, drafting_}; }

  Engine* engine_;
  session::Drafting* drafting_;
  std::optional<Lane> lane_;
  AnswerMaker maker_;
};

// Makes the tokens the timeline's. `done` is its plan, once it has ended well.
class ReadJob final : public Job {
 public:
  // All outlive it. `from`: what has them in memory, too; null: nothing.
  ReadJob(Timeline* timeline, Mailbox* mailbox, std::span<const Token> tokens,
          const memory::Sequence* from, memory::ResumePlan* done)
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
  const memory::Sequence* from_;
  memory::ResumePlan* done_;
  memory::Sequence before_;
  bool has_started_ = false, is_done_ = false;
};

// Makes an answer, or goes on with it.
class MakeJob final : public Job {
 public:
  using Extent = MakeOrder::Extent;

  // Both outlive it. `handle`: whose mark ends it.
  MakeJob(Timeline* timeline, Mailbox* mailbox, MakeOrder order, uint64_t handle)
      : timeline_(timeline), mailbox_(mailbox), order_(std::move(order)), handle_(handle) {}

  Lane* lane() override { return &timeline_->lane(); }
  memory::Variant variant() const override { return timeline_->lane().selection().variant(); }
  std::span<const Token> prompt() const override { return order_.prompt; }
  memory::ResumePlan plan() override;
  Status start() override;
  void choose() override;
  bool chooses_alone() const override;
  DraftedAnswer* drafted() override;
  Status advance() override;
  Status take_step(Status stepped) override;
  bool is_done() const override;
  bool is_blocked() const override;
  void end(Status status) override;

 private:
  session::Completion* completion() const { return timeline_->maker().completion(); }

  Timeline* timeline_;
  Mailbox* mailbox_;
  MakeOrder order_;
  uint64_t handle_;
  bool has_gone_on_ = false;
};

}  // namespace cairn::capi
