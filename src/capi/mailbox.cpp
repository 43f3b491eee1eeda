// Events and outcomes under one lock.
#include "capi/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace cairn::capi {

Result<std::unique_ptr<Mailbox>> Mailbox::open() {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) {
    return fail(ErrorCode::io, "conversation: the system gives no event descriptor: {}",
                std::strerror(errno));
  }
  return std::unique_ptr<Mailbox>(new Mailbox(descriptor));
}

Mailbox::~Mailbox() {
  ::close(descriptor_);
}

// REQUIRES: the lock is held. The descriptor never refuses these: its count is 0 or 1.
void Mailbox::show_news() {
  const bool has_news = is_background_ && (count_ > 0 || (has_ended_ && !is_told_));
  if (has_news == is_readable_) return;
  uint64_t count = 1;
  const ssize_t done = has_news ? ::write(descriptor_, &count, sizeof count)
                                : ::read(descriptor_, &count, sizeof count);
  is_readable_ = done == ssize_t(sizeof count) ? has_news : is_readable_;
}

// REQUIRES: the lock is held.
AnswerEvent& Mailbox::add() {
  if (count_ == events_.size()) {
    std::vector<AnswerEvent> more(2 * count_);
    for (size_t index = 0; index < count_; ++index) {
      std::swap(more[index], events_[(first_ + index) % events_.size()]);
    }
    events_.swap(more);
    first_ = 0;
  }
  return events_[(first_ + count_++) % events_.size()];
}

void Mailbox::post(AnswerEvent& event) {
  const std::lock_guard lock(mutex_);
  std::swap(add(), event);
  show_news();
  changed_.notify_all();
}

bool Mailbox::is_full() const {
  const std::lock_guard lock(mutex_);
  return count_ >= kEventsMax;
}

void Mailbox::end(Answer outcome, bool has_answer, std::optional<AnswerEnd> end) {
  const std::lock_guard lock(mutex_);
  if (end) {
    AnswerEvent& last = add();
    last.clear();
    last.end = end;
  }
  outcome_ = std::move(outcome);
  has_answer_ = has_answer;
  has_ended_ = true;
  is_told_ = false;
  show_news();
  changed_.notify_all();
}

void Mailbox::begin(bool is_background) {
  const std::lock_guard lock(mutex_);
  count_ = 0;
  is_background_ = is_background;
  has_ended_ = is_told_ = false;
  show_news();
}

void Mailbox::clear() {
  const std::lock_guard lock(mutex_);
  count_ = 0;
  has_answer_ = false;
  show_news();
}

bool Mailbox::take(AnswerEvent& event) {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return false;
  std::swap(event, events_[first_]);
  first_ = (first_ + 1) % events_.size();
  --count_;
  show_news();
  return true;
}

bool Mailbox::wait(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return has_ended_ || count_ > 0; });
}

bool Mailbox::wait_for_end(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return has_ended_; });
}

bool Mailbox::has_ended() const {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

bool Mailbox::has_answer() const {
  const std::lock_guard lock(mutex_);
  return has_ended_ && has_answer_;
}

Answer Mailbox::take_outcome() {
  const std::lock_guard lock(mutex_);
  is_told_ = true;
  show_news();
  return std::exchange(outcome_, Answer());
}

}  // namespace cairn::capi
