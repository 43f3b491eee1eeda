// Comments, then what was made.
#include "serve/models/loading_reply.h"

namespace cairn::serve {

void PendingModel::add_progress(const std::string& note) {
  const std::lock_guard lock(mutex_);
  news_.note = note;
  if (wake_) wake_();
}

// Making takes a while, and nobody is kept waiting meanwhile.
void PendingModel::end(Checked<ModelHandle> model) {
  Make make;
  {
    const std::lock_guard lock(mutex_);
    make = std::move(make_);
    if (is_dropped_) return;
  }
  std::unique_ptr<http::Reply> reply = make(std::move(model));
  make = {};
  const std::lock_guard lock(mutex_);
  news_.reply = std::move(reply);
  if (wake_) wake_();
}

void PendingModel::listen(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void PendingModel::drop() {
  Make gone;
  const std::lock_guard lock(mutex_);
  is_dropped_ = true;
  wake_ = {};
  gone.swap(make_);
}

PendingModel::News PendingModel::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

void LoadingReply::listen(std::function<void()> wake) {
  wake_ = wake;
  pending_->listen(std::move(wake));
}

http::Reply::State LoadingReply::read(std::string& out) {
  if (made_ != nullptr) return read_made(out);
  PendingModel::News news = pending_->take();
  if (news.reply == nullptr) {
    if (!is_stream_ || news.note.empty()) return State::waiting;
    if (!head_) {
      head_ = {.content_type = "text/event-stream",
               .headers = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}},
               .is_stream = true};
    }
    out += fmt::format(": {}\n\n", news.note);
    return State::waiting;
  }
  made_ = std::move(news.reply);
  made_->listen(std::move(wake_));
  return read_made(out);
}

http::Reply::State LoadingReply::read_made(std::string& out) {
  if (!head_) return made_->read(out);
  std::string bytes;
  const State state = made_->read(bytes);
  const http::ReplyHead* const head = made_->head();
  if (head == nullptr || head->is_stream) {
    out += bytes;
    return state;
  }
  whole_ += bytes;
  if (state == State::waiting) return state;
  if (form_ == ErrorForm::anthropic) out += "event: error\n";
  out += "data: " + whole_ + "\n\n";
  return state;
}

const http::ReplyHead* LoadingReply::head() const {
  if (head_) return &*head_;
  return made_ == nullptr ? nullptr : made_->head();
}

std::string_view LoadingReply::idle_text() const {
  if (made_ != nullptr) return made_->idle_text();
  return head_ ? ": waiting\n\n" : "";
}

std::vector<std::pair<std::string, int64_t>> LoadingReply::figures() const {
  return made_ == nullptr ? http::Reply::figures() : made_->figures();
}

}  // namespace cairn::serve
