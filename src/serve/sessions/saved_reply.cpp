// Withholding the end.
#include "serve/sessions/saved_reply.h"

namespace cairn::serve {

void SavedReply::listen(std::function<void()> wake) {
  wake_ = wake;
  made_->listen(std::move(wake));
}

SavedReply::~SavedReply() {
  if (writing_ == nullptr) return;
  const std::lock_guard lock(writing_->mutex);
  writing_->wake = {};
}

http::Reply::State SavedReply::read(std::string& out) {
  if (state_ == State::waiting) {
    state_ = made_->read(last_);
    if (state_ == State::waiting) {
      out += std::exchange(last_, {});
      return state_;
    }
  }
  if (!is_written()) return State::waiting;
  has_ended_ = true;
  out += std::exchange(last_, {});
  return state_;
}

// Asks at the first call, when the session is what the reply has made of it.
bool SavedReply::is_written() {
  if (writing_ != nullptr) {
    const std::lock_guard lock(writing_->mutex);
    return writing_->is_over;
  }
  writing_ = std::make_shared<Writing>();
  writing_->wake = wake_;
  return sessions_->is_written(owner_, id_, [writing = writing_] {
    const std::lock_guard lock(writing->mutex);
    writing->is_over = true;
    if (writing->wake) writing->wake();
  });
}

// That of a whole reply tells its length.
const http::ReplyHead* SavedReply::head() const {
  const http::ReplyHead* const head = made_->head();
  const bool is_told = head != nullptr && (head->is_stream || has_ended_);
  return is_told ? head : nullptr;
}

}  // namespace cairn::serve
