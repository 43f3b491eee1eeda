// Makes a kernel from a function that computes one row of an op: one task for each row. Knows of an
// op only the field that has the number of rows.
#pragma once

#include <span>
#include <variant>

#include "backends/host/host.h"

namespace cairn::reference {

// The rows an op runs over: those of what it writes, or of `x` where it works in place;
// all tokens where it writes no rows.
template <class T>
RowSet row_set(const T& op) {
  if constexpr (requires { op.out; }) {
    return op.out.set;
  } else if constexpr (requires { op.x; }) {
    return op.x.set;
  } else {
    return RowSet::tokens;
  }
}

inline std::span<float> row_of(const Step& step, const Rows& rows, int32_t row) {
  return {step.row(rows, row), size_t(rows.width)};
}

template <class T, void (*ComputeRow)(const T& op, const Step& step, int32_t row)>
host::HostKernel row_kernel() {
  return {.task_count = [](const Op& op, const Step& step) -> int64_t {
            return step.row_count(row_set(std::get<T>(op)));
          },
          .run = [](const Op& op, const Step& step, int64_t task,
                    std::byte*) { ComputeRow(std::get<T>(op), step, int32_t(task)); },
          .scratch_bytes = nullptr};
}

}  // namespace cairn::reference
