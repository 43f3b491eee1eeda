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

void Timeline::drop_answer() {
  sampler_ = sample::SamplerState(sampler());
  completion_.reset();
  draft_.reset();
  terms_.reset();
}

Status Timeline::begin_answer(std::span<const Token> prompt,
                              std::shared_ptr<const AnswerTerms> terms) {
  terms_ = std::move(terms);
  sample::Sampler sampler(terms_->sampling, engine_->tokenizer());
  sampler.set_state(sampler_);
  session::AnswerRequest request{.prompt = prompt,
                                 .message_starts = {},
                                 .answer_prefix = {},
                                 .token_count_max = terms_->token_count_max,
                                 .matcher = terms_->matcher.get(),
                                 .stop = terms_->stop};
  receipt_.reset();
  if (terms_->wants_receipt) {
    draft_ =
        std::make_unique<session::ReceiptDraft>(*engine_, lane_->selection(), request, sampler,
                                                session::ReceiptForm{.constraint = terms_->form});
    request.choices = &draft_->choices;
  }
  CAIRN_TRY(completion_, session::Completion::begin(engine_, &*lane_, request, std::move(sampler)));
  return Ok{};
}

AnswerEvent Timeline::take_event() {
  AnswerEvent event;
  for (const chat::OutputEvent& piece : completion_->take_events()) event.text += piece.text;
  const std::span<const Token> tokens = completion_->take_tokens();
  event.tokens.assign(tokens.begin(), tokens.end());
  for (const sample::LogProbabilities& each : completion_->take_probabilities()) {
    event.log_probabilities.push_back(each.chosen.log_probability);
  }
  return event;
}

Result<session::FinishReason> Timeline::end_answer() {
  Result<session::Answer> answer = completion_->finish();
  if (answer && draft_ != nullptr) {
    receipt_ = std::make_shared<const session::Receipt>(std::move(*draft_).finish(answer->finish));
  }
  drop_answer();
  if (!answer) return std::move(answer).error();
  return answer->finish;
}

// A lane that has given up its pages reads again what the cache has lost.
void Timeline::pause_answer() {
  if (lane_->is_preempted() && !lane_->resume()) {
    drop_answer();
    lane_.emplace(engine_);
  }
}

memory::ResumePlan ReadJob::plan() {
  if (from_ != nullptr && from_->sequence->length() > 0) {
    timeline_->engine().cache().keep(*from_->sequence);
  }
  return timeline_->lane().plan_reading(tokens_);
}

// The sequence before is held, so that it can be gone back to.
Status ReadJob::start() {
  *done_ = plan();
  timeline_->drop_answer();
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
  mailbox_->end(std::move(status), timeline_->completion() != nullptr);
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
  if (order_.prompt.empty()) return Ok{};
  timeline_->drop_answer();
  return timeline_->begin_answer(order_.prompt, std::move(order_.terms));
}

void MakeJob::give_logits() {
  if (order_.logits.empty()) return;
  timeline_->completion()->give_logits(std::exchange(order_.logits, {}));
}

void MakeJob::choose() {
  if (order_.extent == Extent::rows) return;
  give_logits();
  timeline_->completion()->choose();
}

bool MakeJob::chooses_alone() const {
  return timeline_->completion()->has_matcher();
}

Status MakeJob::advance() {
  if (handles::has_mark(order_.handle)) return fail(ErrorCode::cancelled, "cancelled");
  has_gone_on_ = true;
  if (order_.extent == Extent::rows) return Ok{};
  session::Completion& completion = *timeline_->completion();
  give_logits();
  CAIRN_TRY(completion.advance());
  if (!completion.is_done()) mailbox_->post(timeline_->take_event());
  return Ok{};
}

Status MakeJob::take_step(Status stepped) {
  if (order_.extent == Extent::rows || timeline_->completion() == nullptr) return stepped;
  return timeline_->completion()->take_step(std::move(stepped));
}

bool MakeJob::is_done() const {
  const session::Completion* const completion = timeline_->completion();
  if (completion == nullptr) return false;
  return completion->is_done() || (has_gone_on_ && order_.extent != Extent::to_end);
}

bool MakeJob::is_blocked() const {
  return mailbox_->is_full() && !handles::has_mark(order_.handle);
}

// What comes with the answer's end is an event of its own before it.
void MakeJob::end(Status status) {
  session::Completion* const completion = timeline_->completion();
  std::optional<AnswerEvent> last;
  if (completion != nullptr && status && completion->is_done()) {
    AnswerEvent rest = timeline_->take_event();
    if (!rest.tokens.empty() || !rest.text.empty()) mailbox_->post(std::move(rest));
    Result<session::FinishReason> finish = timeline_->end_answer();
    if (finish) {
      last = AnswerEvent{.finish = *finish};
    } else {
      status = std::move(finish).error();
    }
  } else if (completion != nullptr && !status && status.error().code != ErrorCode::cancelled) {
    timeline_->drop_answer();
  }
  timeline_->pause_answer();
  mailbox_->end(std::move(status), timeline_->completion() != nullptr, std::move(last));
}

}  // namespace cairn::capi
