// Withholding the end.
#include "serve/sessions/saved_reply.h"

namespace cairn::serve {

void SavedReply::listen(std::function<void()> wake) {
  wake_ = wake;
  made_->listen(std::move(wake));
}

http::Reply::State SavedReply::read(std::string& out) {
  if (state_ == State::waiting) {
    state_ = made_->read(last_);
    if (state_ == State::waiting) {
      out += std::exchange(last_, {});
      return state_;
    }
  }
  if (is_written_ == nullptr) {
    is_written_ = std::make_shared<std::atomic<bool>>(false);
    // It may be called when this reply is gone.
    const bool is_there = sessions_->is_written(owner_, id_, [flag = is_written_, wake = wake_] {
      *flag = true;
      wake();
    });
    if (is_there) *is_written_ = true;
  }
  if (!*is_written_) return State::waiting;
  out += std::exchange(last_, {});
  return state_;
}

// That of a whole reply tells its length.
const http::ReplyHead* SavedReply::head() const {
  const http::ReplyHead* const head = made_->head();
  const bool is_told = head != nullptr && (head->is_stream || (is_written_ && *is_written_));
  return is_told ? head : nullptr;
}

}  // namespace cairn::serve
