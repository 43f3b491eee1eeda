// How many tokens of each sequence's draft a step checks: as many as make the step's tokens
// cheapest. Knows chances and times, neither drafters nor sequences. Thread rule: none, it has no
// state.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"

namespace cairn::draft {

// For all sequences of a step. `reach`: of each sequence's draft (may be empty), how likely each
// token and all before it are right; descends. `row_count_max`: of the step, with the row that each
// sequence has anyway. `seconds`: what a step of so many rows takes; 0: not known. A step that
// takes less than one of fewer rows is taken for equally slow. Rows are added in the order of their
// reach, whosever they are; taken is the number of rows at which (sequences + sum of reaches) /
// seconds(rows) is largest, so a cost that stands still or jumps hides nothing behind it. Rows of
// unknown cost are tried a few at a time, at a price that they will hardly have. Writes to
// `counts`, one for each sequence. Allocates nothing.
void choose_counts(std::span<const std::span<const float>> reach, int32_t row_count_max,
                   FunctionRef<double(int32_t rows)> seconds, std::span<int32_t> counts);

}  // namespace cairn::draft
