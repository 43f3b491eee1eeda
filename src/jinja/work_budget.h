// The work that templates may do, in steps; what touches many bytes pays a step for each 256 of
// them. One render may have a budget of its own, or several may share one. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace cairn::jinja {

constexpr int64_t kStepsMax = 2'000'000;
constexpr size_t kStepBytes = 256;

class WorkBudget {
 public:
  explicit WorkBudget(int64_t steps = kStepsMax) : steps_(steps), left_(steps) {}

  Status step() {
    if (--left_ >= 0) return Ok{};
    return over();
  }
  // Small change adds up to steps.
  Status work(size_t bytes) {
    bytes_ += bytes;
    left_ -= int64_t(bytes_ / kStepBytes);
    bytes_ %= kStepBytes;
    return left_ >= 0 ? Status(Ok{}) : Status(over());
  }
  bool is_spent() const { return left_ < 0; }
  int64_t used_steps() const { return steps_ - left_; }

 private:
  Error over() const {
    return fail(ErrorCode::no_room, "the template's work: expected at most {} steps, found more",
                steps_);
  }

  int64_t steps_;
  int64_t left_;
  size_t bytes_ = 0;  // Below a step.
};

}  // namespace cairn::jinja
