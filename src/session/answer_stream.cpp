// A bounded queue of events with an end.
#include "session/answer_stream.h"

#include <utility>

namespace cairn::session {

namespace {

size_t bytes_of(const chat::OutputEvent& event) {
  return sizeof(event) + event.text.size();
}

size_t bytes_of(const sample::LogProbabilities& probabilities) {
  return sizeof(probabilities) + probabilities.top.size() * sizeof(sample::TokenProbability);
}

}  // namespace

void AnswerStream::begin(const PromptReport& prompt) {
  const std::lock_guard lock(mutex_);
  prompt_ = prompt;
  tell();
}

void AnswerStream::tell_prompt(std::shared_ptr<const PromptProbabilities> probabilities) {
  const std::lock_guard lock(mutex_);
  prompt_probabilities_ = std::move(probabilities);
  tell();
}

void AnswerStream::add(std::vector<chat::OutputEvent> events,
                       std::vector<sample::LogProbabilities> probabilities,
                       std::span<const Token> tokens) {
  const std::lock_guard lock(mutex_);
  if (takes_all_) return;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (events.empty() && probabilities.empty()) return;
  for (chat::OutputEvent& event : events) {
    bytes_ += bytes_of(event);
    events_.push_back(std::move(event));
  }
  for (sample::LogProbabilities& one : probabilities) {
    bytes_ += bytes_of(one);
    probabilities_.push_back(std::move(one));
  }
  tell();
}

void AnswerStream::finish(Result<Answer> answer) {
  const std::lock_guard lock(mutex_);
  answer_ = std::move(answer);
  on_taken_ = {};
  tell();
}

bool AnswerStream::is_full() const {
  const std::lock_guard lock(mutex_);
  return bytes_ >= kBytesMax;
}

std::vector<chat::OutputEvent> AnswerStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !events_.empty() || answer_; });
  make_room();
  probabilities_.clear();
  tokens_.clear();
  return std::exchange(events_, {});
}

AnswerPiece AnswerStream::take() {
  const std::lock_guard lock(mutex_);
  make_room();
  return {.events = std::exchange(events_, {}),
          .probabilities = std::exchange(probabilities_, {}),
          .tokens = std::exchange(tokens_, {}),
          .prompt = prompt_,
          .prompt_probabilities = std::exchange(prompt_probabilities_, nullptr),
          .has_ended = answer_.has_value()};
}

void AnswerStream::listen(std::function<void()> on_change) {
  const std::lock_guard lock(mutex_);
  on_change_ = std::move(on_change);
}

Result<Answer> AnswerStream::wait() {
  std::unique_lock lock(mutex_);
  takes_all_ = true;
  events_.clear();
  probabilities_.clear();
  tokens_.clear();
  make_room();
  changed_.wait(lock, [this] { return answer_.has_value(); });
  return *std::move(answer_);
}

void AnswerStream::tell() {
  changed_.notify_all();
  if (on_change_) on_change_();
}

void AnswerStream::make_room() {
  const bool was_full = bytes_ >= kBytesMax;
  bytes_ = 0;
  if (was_full && on_taken_) on_taken_();
}

}  // namespace cairn::session
