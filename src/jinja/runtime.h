// The limits of one render (steps, memory) and its clock, the only outside input. One render, one
// Runtime, one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "jinja/builtins/strftime.h"
#include "jinja/values/heap.h"

namespace cairn::jinja {

constexpr int64_t kStepsMax = 2'000'000;
constexpr size_t kOutputBytesMax = 8u << 20;
constexpr int kCallDepthMax = 64;
constexpr int64_t kRangeMax = 100'000;
// What handling one element costs, beside 256 for a step: as much as this many bytes.
constexpr size_t kElementWork = 64;
// What searching costs for each byte of the text.
constexpr size_t kSearchWork = 6;
// Nested evaluations, whatever they are: each costs up to about 2 KiB of stack.
constexpr int kNativeDepthMax = 900;

// What the errors of a render mean. Syntax errors are invalid_data, from parse().
constexpr ErrorCode kRefusedByTemplate = ErrorCode::invalid_argument;  // raise_exception
constexpr ErrorCode kRunFailed = ErrorCode::unsupported;  // The template cannot do this.
constexpr ErrorCode kOverBudget = ErrorCode::no_room;

class Runtime {
 public:
  explicit Runtime(std::optional<CivilTime> clock) : clock_(clock) {}

  Heap& heap() { return heap_; }
  const std::optional<CivilTime>& clock() const { return clock_; }

  Status step() {
    if (--steps_left_ >= 0) return Ok{};
    return over_steps();
  }
  // Touching this many bytes: long operations pay, 256 bytes a step; small change adds up.
  Status work(size_t bytes) {
    work_bytes_ += bytes;
    steps_left_ -= int64_t(work_bytes_ / 256);
    work_bytes_ %= 256;
    return steps_left_ >= 0 ? Status(Ok{}) : Status(over_steps());
  }
  // Whether a string may grow to this size.
  Status check_string(size_t bytes) const;
  // Before a string or a list of this size is built: checked and paid for.
  Status prepare_string(size_t bytes);
  Status prepare_items(size_t count);

  Result<Value> string(MarkedText text) { return heap_.string(std::move(text)); }
  Result<Value> string(std::string text, bool trusted) {
    return heap_.string(MarkedText(std::move(text), trusted));
  }
  Result<Value> list(std::vector<Value> items) { return heap_.list(std::move(items)); }
  Result<Value> tuple(std::vector<Value> items) {
    return heap_.list(std::move(items), Kind::tuple);
  }
  Result<Value> generator(std::vector<Value> items);

 private:
  static Error over_steps();

  int64_t steps_left_ = kStepsMax;
  size_t work_bytes_ = 0;  // Below a step.
  Heap heap_;
  std::optional<CivilTime> clock_;
};

}  // namespace cairn::jinja
