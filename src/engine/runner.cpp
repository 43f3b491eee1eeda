// Filling in a step and handing it to the backend.
#include "engine/runner.h"

#include <utility>

namespace cairn {

Result<std::unique_ptr<Runner>> Runner::create(const models::Model& model,
                                               const memory::Layout& layout, Backend* backend,
                                               Graph::Limits limits) {
  Graph graph(layout);
  const Tensor logits = model.forward(graph);
  Plan plan = std::move(graph).finish(logits, limits);
  CAIRN_TRY(Arena workspace, Arena::reserve(plan.workspace_bytes));
  std::unique_ptr<Runner> runner(
      new Runner(std::move(plan), layout, backend, std::move(workspace)));
  CAIRN_TRY(backend->prepare(runner->plan_));
  return runner;
}

Runner::Runner(Plan plan, const memory::Layout& layout, Backend* backend, Arena workspace)
    : plan_(std::move(plan)), layout_(layout), backend_(backend), workspace_(std::move(workspace)) {
  const size_t row_count = size_t(plan_.row_count_max);
  tokens_.reserve(row_count);
  positions_.reserve(row_count);
  slice_of_row_.reserve(row_count);
  slices_.reserve(row_count);
  output_rows_.reserve(size_t(plan_.output_count_max));
}

void Runner::run(std::span<const BatchPart> parts) {
  tokens_.clear();
  positions_.clear();
  slice_of_row_.clear();
  slices_.clear();
  output_rows_.clear();
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
  CHECK(int32_t(tokens_.size()) <= plan_.row_count_max);
  CHECK(int32_t(output_rows_.size()) <= plan_.output_count_max);
  backend_->execute(plan_, Step{.tokens = tokens_,
                                .positions = positions_,
                                .slice_of_row = slice_of_row_,
                                .slices = slices_,
                                .output_rows = output_rows_,
                                .kv_planes = layout_.kv_planes,
                                .state_tensors = layout_.state_tensors,
                                .workspace = workspace_.data()});
}

std::span<const float> Runner::logits(int32_t output) const {
  CHECK(output >= 0 && output < int32_t(output_rows_.size()));
  const Rows& rows = plan_.logits;
  const float* first = reinterpret_cast<const float*>(workspace_.data()) + rows.offset;
  return {first + int64_t(output) * rows.stride, size_t(rows.width)};
}

}  // namespace cairn
