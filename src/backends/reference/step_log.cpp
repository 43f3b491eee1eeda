// The log of the recurrence's inputs: rows copied to where their sequences keep them, and back. A
// copy, so there is no other kernel for it.
#include <cstring>

#include "backends/reference/kernels.h"

namespace cairn::reference {
namespace {

// Where the log of the row's sequence has the row's position; null: it is not kept.
float* place_of_row(const Step& step, int32_t log_plane, int32_t row) {
  const LogPlane& plane = step.log_planes[size_t(log_plane)];
  const Slice& slice = step.slices[size_t(step.slice_of_row[size_t(row)])];
  const int32_t position = step.positions[size_t(row)];
  const PageId page = slice.pages[plane.group][position / kLogPageTokens];
  return page == kNoPage ? nullptr : plane.row(page, position);
}

void store_row(const Op& any, const Step& step, int64_t task, std::byte*) {
  const auto& op = std::get<op::StoreLog>(any);
  float* place = place_of_row(step, op.log_plane, int32_t(task));
  if (place == nullptr) return;
  std::memcpy(place, step.row(op.x, int32_t(task)), size_t(op.x.width) * sizeof(float));
}

void load_row(const Op& any, const Step& step, int64_t task, std::byte*) {
  const auto& op = std::get<op::LoadLog>(any);
  const float* place = place_of_row(step, op.log_plane, int32_t(task));
  CHECK(place != nullptr);
  std::memcpy(step.row(op.out, int32_t(task)), place, size_t(op.out.width) * sizeof(float));
}

}  // namespace

host::HostKernel store_log_kernel() {
  return {.task_count = [](const Op&, const Step& step) -> int64_t {
            return step.log_planes.empty() ? 0 : int64_t(step.tokens.size());
          },
          .run = store_row,
          .scratch_bytes = nullptr};
}

host::HostKernel load_log_kernel() {
  return {.task_count = [](const Op&, const Step& step) { return int64_t(step.tokens.size()); },
          .run = load_row,
          .scratch_bytes = nullptr};
}

}  // namespace cairn::reference
