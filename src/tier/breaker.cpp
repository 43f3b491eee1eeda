// Failures, pauses, trials.
#include "tier/breaker.h"

#include <algorithm>

namespace cairn::tier {

bool Breaker::admits(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (now < blocked_until_ || now < open_until_) return false;
  if (pause_ == pause_.zero()) return true;
  // One trial at a time; one of which nothing was heard is forgotten like a pause.
  if (is_on_trial_ && now < open_until_ + kPauseMax) return false;
  is_on_trial_ = true;
  open_until_ = now;
  return true;
}

void Breaker::note_success() {
  const std::lock_guard lock(mutex_);
  failures_.clear();
  pause_ = {};
  is_on_trial_ = false;
}

void Breaker::end_trial() {
  const std::lock_guard lock(mutex_);
  is_on_trial_ = false;
}

void Breaker::note_failure(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (is_on_trial_) return pause(now);
  if (now < open_until_) return;
  failures_.push_back(now);
  while (now - failures_.front() > kWithin) failures_.pop_front();
  if (failures_.size() >= failures_max_) pause(now);
}

void Breaker::pause(Clock::time_point now) {
  pause_ = std::clamp(2 * pause_, kPauseMin, kPauseMax);
  std::uniform_real_distribution<double> part(1 - kJitter, 1 + kJitter);
  open_until_ = now + std::chrono::duration_cast<Clock::duration>(pause_ * part(random_));
  failures_.clear();
  is_on_trial_ = false;
  ++opened_;
}

bool Breaker::note_refusal(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  refusals_.push_back(now);
  while (now - refusals_.front() > kBlocked) refusals_.pop_front();
  if (refusals_.size() < kRefusals) return false;
  blocked_until_ = std::max<Clock::time_point>(blocked_until_, now + kBlocked);
  refusals_.clear();
  return true;
}

void Breaker::block(std::chrono::seconds time, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  blocked_until_ = std::max(blocked_until_, now + time);
}

bool Breaker::is_open(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return now < blocked_until_ || now < open_until_;
}

uint64_t Breaker::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_;
}

}  // namespace cairn::tier
