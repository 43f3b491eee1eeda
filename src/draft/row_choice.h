// How many tokens of each sequence's draft a step checks: as many as make the step's tokens
// cheapest. Knows chances and times, neither drafters nor sequences. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"

namespace cairn::draft {

// How many tokens a second steps make, drafts included: of the newest few hundred.
class UsualRate {
 public:
  void learn(double tokens, double seconds);
  // 0: no step is known.
  double tokens_per_second() const { return seconds_ > 0 ? tokens_ / seconds_ : 0; }

 private:
  double tokens_ = 0, seconds_ = 0;
};

// For all sequences of a step. `reach`: of each sequence's draft (may be empty), how likely each
// token and all before it are right; descends. `row_count_max`: of the step, with the row that each
// sequence has anyway. `seconds`: what a step of so many rows takes; 0: not known. A step that
// takes less than one of fewer rows is taken for equally slow. `usual_rate`: tokens a second of
// such steps (UsualRate); 0: not known. Rows are added in the order of their reach, whosever they
// are, so a cost that stands still or jumps hides nothing behind it. Taken is the number of rows at
// which tokens / seconds is largest (tokens: sequences + sum of reaches), if that is more than the
// usual rate. Else tokens that are not drafted here are made by better steps, and taken is the
// number at which tokens - usual_rate * seconds is largest. Rows of unknown cost are tried a few at
// a time, at a price that they will hardly have. Writes to `counts`, one for each sequence; returns
// how many tokens are expected of the step. Allocates nothing.
double choose_counts(std::span<const std::span<const float>> reach, int32_t row_count_max,
                     FunctionRef<double(int32_t rows)> seconds, double usual_rate,
                     std::span<int32_t> counts);

}  // namespace cairn::draft
