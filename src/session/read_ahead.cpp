// A lane that reads and says nothing.
#include "session/read_ahead.h"

namespace cairn::session {

Lane* ReadAhead::lane() {
  if (!lane_) {
    lane_.emplace(engine_);
    lane_->select(beginning_.selection);
  }
  return &*lane_;
}

memory::ResumePlan ReadAhead::plan() {
  return lane()->plan_reading(beginning_.tokens, beginning_.message_starts, false);
}

// Nothing is read where all of it is there but the logits, which nobody wants.
Status ReadAhead::start() {
  if (plan().forward_tokens == 0) {
    is_done_ = true;
    return Ok{};
  }
  CAIRN_TRY(lane()->start(beginning_.tokens, beginning_.message_starts));
  return Ok{};
}

Status ReadAhead::advance() {
  is_done_ = true;
  return Ok{};
}

void ReadAhead::end(Status /*status*/) {
  if (lane_ && lane_->sequence().length() > 0) lane_->publish();
}

}  // namespace cairn::session
