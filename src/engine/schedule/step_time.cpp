// Moving averages of what steps cost.
#include "engine/schedule/step_time.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/check.h"
#include "base/trace/moving_average.h"

namespace cairn {

namespace {

constexpr double kWeight = 0.25;      // Of the newest step.
constexpr int32_t kRowsThatTell = 8;  // Fewer rows of prompts cost less than noise.

}  // namespace

size_t StepTime::size_of(int32_t rows) {
  CHECK(rows > 0);
  return std::min(size_t(std::bit_width(uint32_t(rows)) - 1), kSizes - 1);
}

void StepTime::learn(int32_t decode_rows, int32_t prompt_rows, double seconds) {
  if (prompt_rows == 0) {
    if (decode_rows > 0) follow(decode_seconds_[size_of(decode_rows)], seconds, kWeight);
    return;
  }
  if (prompt_rows < kRowsThatTell) return;
  // Weights are read once for all rows, so that beside prompts the others cost less than alone.
  const double rest = std::max(seconds - decode_seconds(decode_rows), seconds / 2);
  follow(prompt_row_seconds_, rest / prompt_rows, kWeight);
}

double StepTime::decode_seconds(int32_t decode_rows) const {
  if (decode_rows == 0) return 0;
  for (size_t size = size_of(decode_rows) + 1; size-- > 0;) {
    if (decode_seconds_[size] > 0) return decode_seconds_[size];
  }
  return 0;
}

int32_t StepTime::prompt_rows(int32_t decode_rows, double seconds, int32_t least,
                              int32_t most) const {
  if (prompt_row_seconds_ == 0) return decode_rows == 0 ? most : std::min(least, most);
  if (least >= most) return most;
  const double rows = (seconds - decode_seconds(decode_rows)) / prompt_row_seconds_;
  return int32_t(std::clamp(rows, double(least), double(most)));
}

}  // namespace cairn
