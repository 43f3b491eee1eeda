// Filling in a step and handing it to the backend.
#include "engine/runner.h"

#include <algorithm>
#include <utility>

namespace cairn {

Result<std::unique_ptr<Runner>> Runner::create(Plans plans, const memory::Layout& layout,
                                               Backend* backend) {
  const size_t workspace_bytes = std::max(
      {plans.step.workspace_bytes, plans.head.workspace_bytes, plans.replay.workspace_bytes});
  CAIRN_TRY(Arena workspace, Arena::reserve(workspace_bytes));
  std::unique_ptr<Runner> runner(
      new Runner(std::move(plans), layout, backend, std::move(workspace)));
  for (const Plan* plan : {&runner->plans_.step, &runner->plans_.head, &runner->plans_.replay}) {
    CAIRN_TRY(backend->prepare(*plan));
  }
  return runner;
}

Runner::Runner(Plans plans, const memory::Layout& layout, Backend* backend, Arena workspace)
    : plans_(std::move(plans)),
      layout_(layout),
      backend_(backend),
      workspace_(std::move(workspace)),
      last_plan_(&plans_.step) {
  const size_t row_count = size_t(row_count_max());
  tokens_.reserve(row_count);
  positions_.reserve(row_count);
  slice_of_row_.reserve(row_count);
  slices_.reserve(row_count);
  output_rows_.reserve(size_t(output_count_max()));
}

void Runner::run(std::span<const BatchPart> parts) {
  clear();
  for (const BatchPart& part : parts) {
    const int32_t first_row = int32_t(tokens_.size());
    const Slice slice = part.transaction->slice(first_row);
    for (const int32_t output : part.outputs) output_rows_.push_back(first_row + output);
    for (int32_t row = 0; row < slice.row_count; ++row) {
      tokens_.push_back(part.transaction->tokens()[size_t(row)]);
      positions_.push_back(slice.first_position + row);
      slice_of_row_.push_back(int32_t(slices_.size()));
    }
    slices_.push_back(slice);
  }
  CHECK(int32_t(tokens_.size()) <= row_count_max());
  CHECK(int32_t(output_rows_.size()) <= output_count_max());
  last_plan_ = &plans_.step;
  backend_->execute(plans_.step, step());
}

void Runner::restore_logits(std::span<const float> hidden) {
  clear();
  output_rows_.push_back(0);
  last_plan_ = &plans_.head;
  const std::span<float> place = output_row(plans_.head.hidden, 0);
  CHECK(hidden.size() == place.size());
  std::copy(hidden.begin(), hidden.end(), place.begin());
  backend_->execute(plans_.head, step());
}

void Runner::clear() {
  tokens_.clear();
  positions_.clear();
  slice_of_row_.clear();
  slices_.clear();
  output_rows_.clear();
}

Step Runner::step() const {
  return {.tokens = tokens_,
          .positions = positions_,
          .slice_of_row = slice_of_row_,
          .slices = slices_,
          .output_rows = output_rows_,
          .kv_planes = layout_.kv_planes,
          .state_tensors = layout_.state_tensors,
          .workspace = workspace_.data()};
}

std::span<float> Runner::output_row(const Rows& rows, int32_t output) const {
  CHECK(output >= 0 && output < int32_t(output_rows_.size()));
  float* first = reinterpret_cast<float*>(workspace_.data()) + rows.offset;
  return {first + int64_t(output) * rows.stride, size_t(rows.width)};
}

std::span<const float> Runner::hidden(int32_t output) const {
  return output_row(last_plan_->hidden, output);
}

std::span<const float> Runner::logits(int32_t output) const {
  return output_row(last_plan_->logits, output);
}

}  // namespace cairn
