// A prompt that no answer follows.
#include "session/score_job.h"

namespace cairn::session {

Lane* ScoreJob::lane() {
  if (!lane_) {
    reader_.emplace(text_, 1, &engine_->threads());
    lane_.emplace(engine_);
    lane_->read_logits(&*reader_);
  }
  return &*lane_;
}

Status ScoreJob::start() {
  CAIRN_TRY(lane()->start(text_));
  return Ok{};
}

Status ScoreJob::advance() {
  is_done_ = true;
  return Ok{};
}

void ScoreJob::end(Status status) {
  if (!status) return done_(std::move(status).error());
  auto made = reader_->made();
  if (!made) return done_(std::move(made).error());
  done_(**made);
}

}  // namespace cairn::session
