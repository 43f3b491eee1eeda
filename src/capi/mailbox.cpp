// Events and outcomes under one lock.
#include "capi/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

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
  const bool has_news = !events_.empty() || (has_ended_ && !is_told_);
  if (has_news == is_readable_) return;
  uint64_t count = 1;
  const ssize_t done = has_news ? ::write(descriptor_, &count, sizeof count)
                                : ::read(descriptor_, &count, sizeof count);
  is_readable_ = done == ssize_t(sizeof count) ? has_news : is_readable_;
}

void Mailbox::post(AnswerEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  show_news();
  changed_.notify_all();
}

bool Mailbox::is_full() const {
  const std::lock_guard lock(mutex_);
  return events_.size() >= kEventsMax;
}

void Mailbox::end(Status outcome, bool has_answer, std::optional<AnswerEvent> last) {
  const std::lock_guard lock(mutex_);
  if (last) events_.push_back(*std::move(last));
  outcome_ = std::move(outcome);
  has_answer_ = has_answer;
  has_ended_ = true;
  is_told_ = false;
  show_news();
  changed_.notify_all();
}

void Mailbox::begin() {
  const std::lock_guard lock(mutex_);
  events_.clear();
  has_ended_ = is_told_ = false;
  show_news();
}

void Mailbox::clear() {
  const std::lock_guard lock(mutex_);
  events_.clear();
  has_answer_ = false;
  show_news();
}

std::optional<AnswerEvent> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return std::nullopt;
  AnswerEvent event = std::move(events_.front());
  events_.pop_front();
  show_news();
  return event;
}

bool Mailbox::wait(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return has_ended_ || !events_.empty(); });
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

Status Mailbox::take_outcome() {
  const std::lock_guard lock(mutex_);
  is_told_ = true;
  show_news();
  return std::exchange(outcome_, Ok{});
}

}  // namespace cairn::capi
