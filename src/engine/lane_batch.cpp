// One step for several lanes.
#include "engine/lane_batch.h"

namespace cairn {

Result<size_t> LaneBatch::step(std::span<Lane* const> lanes) {
  stepped_.clear();
  items_.clear();
  int32_t free_rows = engine_->runner().row_count_max();
  for (Lane* lane : lanes) {
    if (!lane->wants_rows() || free_rows == 0) continue;
    stepped_.push_back(lane);
    items_.push_back(lane->next(free_rows));
    free_rows -= int32_t(items_.back().tokens.size());
  }
  const auto take = [this](size_t item, const StepOutputs& outputs) {
    return stepped_[item]->take(outputs);
  };
  CAIRN_TRY(const StepReport report, engine_->step(items_, take));
  for (size_t item = 0; item < report.item_count; ++item) CAIRN_TRY(stepped_[item]->settle());
  return report.item_count;
}

}  // namespace cairn
