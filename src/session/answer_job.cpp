// A completion that is driven by the scheduler.
#include "session/answer_job.h"

#include <utility>

#include "sample/sampler.h"

namespace cairn::session {

AnswerJob::AnswerJob(Engine* engine, AnswerOrder order, std::shared_ptr<AnswerStream> stream)
    : engine_(engine), order_(std::move(order)), stream_(std::move(stream)) {}

AnswerJob::~AnswerJob() = default;

Lane* AnswerJob::lane() {
  if (!lane_) {
    lane_.emplace(engine_);
    Result<Selection> selection = order_.adapters ? engine_->select(*order_.adapters)
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

Status AnswerJob::start() {
  CAIRN_TRY(std::move(selected_));
  const AnswerRequest request{.prompt = order_.prompt,
                              .message_starts = order_.message_starts,
                              .answer_prefix = order_.answer_prefix,
                              .token_count_max = order_.token_count_max,
                              .matcher = order_.matcher.get(),
                              .constrains_calls = order_.constrains_calls,
                              .format = order_.format,
                              .tools = order_.tools,
                              .stop = order_.stop,
                              .prompt_end = order_.prompt_end,
                              .reasoning_tokens_max = order_.reasoning_tokens_max};
  sample::Sampler sampler(order_.sampling, engine_->tokenizer());
  CAIRN_TRY(completion_, Completion::begin(engine_, lane(), request, std::move(sampler)));
  stream_->begin(completion_->prompt());
  return Ok{};
}

Status AnswerJob::advance() {
  CAIRN_TRY(completion_->advance());
  stream_->add(completion_->take_events(), completion_->take_probabilities(),
               completion_->take_tokens());
  return Ok{};
}

Status AnswerJob::take_step(Status stepped) {
  return completion_->take_step(std::move(stepped));
}

// What was computed stays for whoever asks for it again.
void AnswerJob::end(Status status) {
  if (status && is_done()) {
    stream_->add(completion_->take_events(), completion_->take_probabilities(),
                 completion_->take_tokens());
    stream_->finish(completion_->finish());
  } else {
    if (lane_ && lane_->sequence().length() > 0) lane_->publish();
    stream_->finish(std::move(status).error());
  }
}

}  // namespace cairn::session
