// The tasks of the router: some rows each, because a row alone takes less time than to claim it.
#pragma once

#include <algorithm>
#include <variant>

#include "backends/cpu/ops_kernels.h"
#include "backends/host/host.h"
#include "backends/reference/routing.h"
#include "backends/reference/row_kernel.h"

namespace cairn::cpu {

// Scores of a task: some microseconds. However short it is, a row costs as much as one of 64.
inline constexpr int32_t kRouteScores = 4096, kRouteShortRow = 64;

inline int32_t route_rows(const op::Route& op) {
  return std::max(1, kRouteScores / std::max(kRouteShortRow, op.logits.width));
}

template <const OpsTable& Table>
void route(const Op& any, const Step& step, int64_t task, std::byte* scratch) {
  const auto& op = std::get<op::Route>(any);
  const int32_t first = int32_t(task) * route_rows(op);
  const int32_t end = std::min(step.row_count(op.chosen.set), first + route_rows(op));
  for (int32_t row = first; row < end; ++row) {
    reference::route_row(op, Table.route, reference::row_of(step, op.logits, row), scratch,
                         reference::row_of(step, op.chosen, row),
                         reference::row_of(step, op.weights, row));
  }
}

template <const OpsTable& Table>
host::HostKernel route_kernel() {
  return {.task_count = [](const Op& any, const Step& step) -> int64_t {
            const auto& op = std::get<op::Route>(any);
            return (step.row_count(op.chosen.set) + route_rows(op) - 1) / route_rows(op);
          },
          .run = route<Table>,
          .scratch_bytes = [](const Op& any) -> size_t {
            return reference::route_scratch_bytes(std::get<op::Route>(any));
          }};
}

}  // namespace cairn::cpu
