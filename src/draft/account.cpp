// A balance with a limit.
#include "draft/account.h"

#include <algorithm>
#include <cstddef>

namespace cairn::draft {

namespace {

// The account: what may be lost. Of the fixed part no more than a step takes: on a small model 20
// ms would be a part of the answer that everybody sees.
constexpr double kLostPart = 0.015;
constexpr double kLostSeconds = 0.020;
// What drafts have gained is credit for so many steps, and no more: one draft of many rows that
// fails is no reason to end them, and an answer whose drafts were good at first does not pay for
// long.
constexpr double kCreditSteps = 32;
// Looking for drafts that are not going to be checked.
constexpr double kShadowPart = 0.004;
constexpr double kShadowSeconds = 0.001;

// Weight of the newest step, and of the newest draft that was only compared.
constexpr double kWeight = 0.2;
constexpr double kShadowWeight = 1.0 / 16;
// So many rows are risked while nothing at all is known.
constexpr int32_t kFirstCount = 4;
constexpr double kRowCostLeast = 0.01;  // A row is never free.
constexpr int32_t kCountMax = 1 << 20;
// Drafts return after so many steps, if those in the meantime would have gained so much of a step
// each, and stood for so many steps: one that is right is as much evidence as it has tokens.
constexpr int32_t kWaitLeast = 32;
constexpr int32_t kWaitMost = 4096;
constexpr int32_t kShadowLeast = 24;
constexpr double kGainLeast = 0.1;

void average(double& value, double observed, double weight = kWeight) {
  value = value == 0 ? observed : value + weight * (observed - value);
}

}  // namespace

double Account::limit() const {
  const double fixed = plain_ == 0 ? kLostSeconds : std::min(kLostSeconds, plain_);
  return fixed + kLostPart * elapsed_;
}

bool Account::may_look() const {
  return !is_off_ || drafting_ < kShadowSeconds + kShadowPart * elapsed_;
}

int32_t Account::count_max() const {
  if (plain_ == 0) return kFirstCount;
  const double row = plain_ * std::max(row_cost_, kRowCostLeast);
  // What drafts have gained may be risked again: an answer is slower only beyond that.
  const double room = limit() + saved_;
  return std::clamp(int32_t(std::min(room / row, double(kCountMax))), 1, kCountMax);
}

void Account::add_step(const Step& step) {
  elapsed_ += step.seconds;
  const bool is_plain = step.checked == 0 && step.plain_seconds == 0;
  const double plain = is_plain ? step.seconds : step.plain_seconds;
  if (plain > 0) average(plain_, plain);
  if (is_off_) consider_return();
  if (step.checked == 0) {
    if (lost_ > limit()) go_off();
    return;
  }
  if (plain > 0) {
    const double more = std::max(0.0, step.seconds - plain) / plain;
    // From what is expected at first: the machine may have held up the very first step with drafts.
    row_cost_ += kWeight * (more / double(step.checked) - row_cost_);
    settle(double(step.accepted + 1) * plain - step.seconds);
  }
  if (lost_ > limit()) go_off();
}

void Account::add_drafting(double seconds) {
  elapsed_ += seconds;
  drafting_ += seconds;
  average(drafting_seconds_, seconds);
  settle(-seconds);
}

void Account::add_reading(double seconds) {
  elapsed_ += seconds;
  reading_ += seconds;
}

void Account::settle(double seconds) {
  saved_ += seconds;
  lost_ = std::max(-kCreditSteps * plain_, lost_ - seconds);
}

void Account::go_off() {
  if (is_off_) return;
  is_off_ = true;
  const bool has_gained = saved_ > saved_before_;
  wait_ = wait_ == 0 || has_gained ? kWaitLeast : std::min(2 * wait_, kWaitMost);
  off_steps_ = 0;
  shadow_count_ = shadow_steps_ = 0;
  shadow_gain_ = 0;
}

int32_t Account::worth(std::span<const float> reach) const {
  double gain = 0, best = 0;
  int32_t count = 0;
  for (size_t i = 0; i < reach.size(); ++i) {
    gain += double(reach[i]) - row_cost_;
    if (gain <= best) continue;
    best = gain;
    count = int32_t(i) + 1;
  }
  return count;
}

void Account::add_shadow(int32_t checked, int32_t accepted) {
  if (!is_off_) return;
  double gain = double(accepted) - double(checked) * row_cost_;
  if (plain_ > 0) gain -= drafting_seconds_ / plain_;
  shadow_gain_ += (gain - shadow_gain_) * std::max(kShadowWeight, 1.0 / double(++shadow_count_));
  shadow_steps_ += std::max(accepted, 1);
}

void Account::consider_return() {
  ++off_steps_;
  const bool has_waited = off_steps_ >= wait_ && shadow_steps_ >= kShadowLeast;
  if (!has_waited || shadow_gain_ < kGainLeast || lost_ > limit()) return;
  is_off_ = false;
  saved_before_ = saved_;
}

}  // namespace cairn::draft
