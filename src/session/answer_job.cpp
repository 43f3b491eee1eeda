// A completion that is driven by the scheduler.
#include "session/answer_job.h"

#include <algorithm>
#include <utility>

#include "sample/sampler.h"

namespace cairn::session {

AnswerRequest request_of(const AnswerOrder& order) {
  return {.prompt = order.prompt,
          .message_starts = order.message_starts,
          .answer_prefix = order.answer_prefix,
          .token_count_max = order.token_count_max,
          .matcher = order.matcher.get(),
          .constrains_calls = order.constrains_calls,
          .format = order.format,
          .tools = order.tools,
          .stop = order.stop,
          .prompt_end = order.prompt_end,
          .reasoning_tokens_max = order.reasoning_tokens_max};
}

AnswerJob::AnswerJob(Engine* engine, AnswerOrder order, std::shared_ptr<AnswerStream> stream,
                     PromptPins* pins, Drafting* drafting)
    : engine_(engine),
      pins_(pins),
      drafting_(drafting),
      order_(std::move(order)),
      stream_(std::move(stream)) {}

AnswerJob::~AnswerJob() = default;

// A job that waits has a lane that knows its variant, and no plans: they take time and memory.
Lane* AnswerJob::lane() {
  if (!lane_) {
    lane_.emplace(engine_);
    if (order_.computes_all) lane_->compute_all();
    if (order_.prompt_probability_count > 0) {
      prompt_reader_.emplace(order_.prompt, size_t(order_.prompt_probability_count),
                             &engine_->threads());
      lane_->read_logits(&*prompt_reader_);
    }
    Result<Selection> selection = order_.adapters ? engine_->resolve(*order_.adapters)
                                                  : Result<Selection>(engine_->default_selection());
    if (selection) {
      lane_->select((*selection).for_tenant(order_.tenant));
    } else {
      selected_ = std::move(selection).error();
    }
  }
  return &*lane_;
}

memory::ResumePlan AnswerJob::plan() {
  return lane()->plan_reading(order_.prompt, order_.message_starts);
}

Status AnswerJob::prepare_plans() {
  if (!order_.adapters) return Ok{};
  CAIRN_TRY(const Selection selection, engine_->select(*order_.adapters));
  lane_->select(selection.for_tenant(order_.tenant));
  return Ok{};
}

Status AnswerJob::start() {
  CAIRN_TRY(std::move(selected_));
  CAIRN_TRY(prepare_plans());
  AnswerRequest request = request_of(order_);
  sample::Sampler sampler(order_.sampling, engine_->tokenizer());
  sampler.set_state(std::move(order_.sampler));
  if (order_.receipt) {
    draft_ = std::make_unique<ReceiptDraft>(*engine_, lane()->selection(), request, sampler,
                                            *std::move(order_.receipt));
    request.choices = &draft_->choices;
  }
  CAIRN_TRY(completion_,
            Completion::begin(engine_->tokenizer(), lane(), request, std::move(sampler)));
  if (drafting_ != nullptr) {
    completion_->draft(lane(), *drafting_, order_.drafts, request, order_.tenant);
  }
  for (const PromptPin& pin : order_.pins) lane()->expect_branch(pin.position);
  stream_->begin(completion_->prompt());
  return Ok{};
}

// Once, when the prompt is read.
Status AnswerJob::tell_prompt() {
  if (!prompt_reader_ || prompt_probabilities_ != nullptr) return Ok{};
  CAIRN_TRY(prompt_probabilities_, prompt_reader_->made());
  stream_->tell_prompt(prompt_probabilities_);
  return Ok{};
}

// Likewise. What the context has no room for stands at other positions.
void AnswerJob::keep_beginnings() {
  const std::vector<PromptPin> pins = std::exchange(order_.pins, {});
  if (pins_ == nullptr || lane_->left_out_tokens() > 0) return;
  for (const PromptPin& pin : pins) {
    pinned_tokens_ = std::max(pinned_tokens_, pins_->keep(lane_->sequence(), pin));
  }
}

Status AnswerJob::advance() {
  CAIRN_TRY(tell_prompt());
  keep_beginnings();
  if (wants_stop()) {
    completion_->stop();
  } else {
    CAIRN_TRY(completion_->advance());
  }
  stream_->add(completion_->take_events(), completion_->take_settled_probabilities(),
               completion_->take_tokens());
  return Ok{};
}

Status AnswerJob::take_step(Status stepped) {
  return completion_->take_step(std::move(stepped));
}

// What was computed stays for whoever asks for it again.
void AnswerJob::end(Status status) {
  if (drafting_ != nullptr && completion_ != nullptr && !lane_->is_reading()) {
    drafting_->remember(order_.tenant, lane_->whole_text());
  }
  if (status && is_done()) {
    stream_->add(completion_->take_events(), completion_->take_settled_probabilities(),
                 completion_->take_tokens());
    Result<Answer> answer = completion_->finish();
    if (answer) {
      if (!engine_->program().is_default()) answer->program = engine_->program().text();
      answer->sampler = completion_->sampler_state();
      answer->pinned_tokens = pinned_tokens_;
      answer->prompt_probabilities = std::move(prompt_probabilities_);
      if (draft_ != nullptr) {
        answer->receipt =
            std::make_shared<const Receipt>(std::move(*draft_).finish(answer->finish));
      }
    }
    stream_->finish(std::move(answer));
  } else {
    if (lane_ && lane_->sequence().length() > 0) lane_->publish();
    stream_->finish(std::move(status).error());
  }
}

}  // namespace cairn::session
