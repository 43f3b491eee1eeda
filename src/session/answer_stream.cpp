// A bounded queue of events with an end.
#include "session/answer_stream.h"

#include <utility>

namespace cairn::session {

namespace {

size_t bytes_of(const chat::OutputEvent& event) {
  return sizeof(event) + event.text.size();
}

}  // namespace

void AnswerStream::add(std::vector<chat::OutputEvent> events) {
  const std::lock_guard lock(mutex_);
  if (takes_all_) return;
  for (chat::OutputEvent& event : events) {
    bytes_ += bytes_of(event);
    events_.push_back(std::move(event));
  }
  changed_.notify_all();
}

void AnswerStream::finish(Result<Answer> answer) {
  const std::lock_guard lock(mutex_);
  answer_ = std::move(answer);
  on_taken_ = {};
  changed_.notify_all();
}

bool AnswerStream::is_full() const {
  const std::lock_guard lock(mutex_);
  return bytes_ >= kBytesMax;
}

std::vector<chat::OutputEvent> AnswerStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !events_.empty() || answer_; });
  const bool was_full = bytes_ >= kBytesMax;
  bytes_ = 0;
  if (was_full && on_taken_) on_taken_();
  return std::exchange(events_, {});
}

Result<Answer> AnswerStream::wait() {
  std::unique_lock lock(mutex_);
  takes_all_ = true;
  const bool was_full = bytes_ >= kBytesMax;
  bytes_ = 0;
  events_.clear();
  if (was_full && on_taken_) on_taken_();
  changed_.wait(lock, [this] { return answer_.has_value(); });
  return *std::move(answer_);
}

}  // namespace cairn::session
