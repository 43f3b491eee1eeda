// Lanes that outlive the jobs which drive them.
#include "capi/timeline.h"

#include "capi/handles.h"

namespace cairn::capi {

bool Timeline::stands_at(size_t token_count) const {
  return !lane_->is_preempted() && !lane_->wants_rows() &&
         size_t(lane_->sequence().length()) == token_count;
}

// A lane goes on from its own sequence or from one that the cache has.
void Timeline::go_to(const memory::Sequence& sequence) {
  if (sequence.is_closed() || sequence.length() == 0) return clear();
  engine_->cache().keep(sequence);
  if (!lane_->start(sequence.tokens())) lane_.emplace(engine_);
}

void Timeline::clear() {
  if (lane_->sequence().length() > 0) lane_->publish();
  lane_.emplace(engine_);
}

Status Timeline::begin_answer(std::span<const Token> prompt,
                              std::shared_ptr<const AnswerTerms> terms) {
  const AnswerMaker::Computer who = computer();
  return maker_.begin(engine_->tokenizer(), &*lane_, prompt, std::move(terms), &who);
}

void Timeline::draft_answer(std::span<const Token> prompt) {
  if (maker_.completion() == nullptr || (prompt.empty() && lane_->is_reading())) return;
  maker_.draft(prompt.empty() ? lane_->whole_text() : prompt, computer());
}

void Timeline::remember() {
  if (!lane_->is_reading()) drafting_->remember(0, lane_->whole_text());
}

// A lane that has given up its pages reads again what the cache has lost.
void Timeline::pause_answer() {
  if (lane_->is_preempted() && !lane_->resume()) {
    maker_.drop();
    lane_.emplace(engine_);
  }
}

memory::ResumePlan ReadJob::plan() {
  if (from_ != nullptr && from_->length() > 0) timeline_->engine().cache().keep(*from_);
  return timeline_->lane().plan_reading(tokens_);
}

// The sequence before is held, so that it can be gone back to.
Status ReadJob::start() {
  *done_ = plan();
  timeline_->maker().drop();
  before_ = timeline_->lane().sequence();
  has_started_ = true;
  CAIRN_TRY(const PromptReport report, timeline_->lane().start(tokens_));
  done_->resume = report.reused_tokens;
  done_->forward_tokens = report.computed_tokens;
  return Ok{};
}

Status ReadJob::advance() {
  is_done_ = true;
  return Ok{};
}

void ReadJob::end(Status status) {
  if (!status && has_started_) timeline_->go_to(before_);
  // Other conversations may begin alike. Single tokens are those of an answer made by hand.
  if (status && done_->forward_tokens > 1) timeline_->lane().publish();
  before_ = memory::Sequence();
  mailbox_->end(status, timeline_->maker().completion() != nullptr);
}

memory::ResumePlan MakeJob::plan() {
  Lane& lane = timeline_->lane();
  if (!order_.prompt.empty()) return lane.plan_reading(order_.prompt);
  const LaneDemand demand = lane.demand();
  return {.target = lane.sequence().length() + demand.rows,
          .resume = lane.sequence().length(),
          .forward_tokens = demand.rows,
          .recurrence_steps = demand.replay_rows,
          .new_bytes = demand.new_bytes};
}

Status MakeJob::start() {
  if (!order_.prompt.empty()) {
    timeline_->maker().drop();
    CAIRN_TRY(timeline_->begin_answer(order_.prompt, std::move(order_.terms)));
  }
  // Who asks for one token after the other wants each when it is there, and no step for several:
  // nobody would ask drafters.
  if (order_.extent == Extent::to_end) timeline_->draft_answer(order_.prompt);
  return Ok{};
}

void MakeJob::choose() {
  if (order_.extent == Extent::rows) return;
  timeline_->maker().give_logits(order_.logits);
  completion()->choose();
}

bool MakeJob::chooses_alone() const {
  return completion()->has_matcher();
}

DraftedAnswer* MakeJob::drafted() {
  if (order_.extent != Extent::to_end || completion() == nullptr) return nullptr;
  return completion()->has_drafters() ? completion() : nullptr;
}

Status MakeJob::advance() {
  if (handles::has_mark(handle_)) return fail(ErrorCode::cancelled, "cancelled");
  has_gone_on_ = true;
  if (order_.extent == Extent::rows) return Ok{};
  timeline_->maker().give_logits(order_.logits);
  return timeline_->maker().advance(*mailbox_);
}

Status MakeJob::take_step(Status stepped) {
  if (order_.extent == Extent::rows || completion() == nullptr) return stepped;
  return completion()->take_step(std::move(stepped));
}

bool MakeJob::is_done() const {
  if (completion() == nullptr) return false;
  return completion()->is_done() || (has_gone_on_ && order_.extent != Extent::to_end);
}

bool MakeJob::is_blocked() const {
  return mailbox_->is_full() && !handles::has_mark(handle_);
}

void MakeJob::end(Status status) {
  const auto end = timeline_->maker().pause(status, *mailbox_);
  if (end) timeline_->remember();
  timeline_->pause_answer();
  mailbox_->end(status, completion() != nullptr, end);
}

}  // namespace cairn::capi
