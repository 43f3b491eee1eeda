// Rates in cells; each forgets as it counts.
#include "draft/calibration.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace cairn::draft {

namespace {

// Upper ends of the claimed chances that share a cell; close where a small difference decides
// whether a row is worth its time, at both ends.
constexpr std::array<float, 12> kChanceEnds = {.02f, .05f, .1f, .2f, .3f,  .45f,
                                               .6f,  .7f,  .8f, .9f, .95f, .98f};
// No rate is certain: one success in so many is always possible, and one failure.
constexpr float kLeast = 0.002f;

}  // namespace

// Depths 0, 1, 2–3, 4–7, 8–15, 16–31, 32–63 and more share a cell each.
size_t Calibration::cell_of(int32_t depth, float claimed) {
  const auto depth_row = std::min(size_t(std::bit_width(uint32_t(depth))), kDepths - 1);
  const auto end = std::upper_bound(kChanceEnds.begin(), kChanceEnds.end(), claimed);
  return depth_row * kChances + size_t(end - kChanceEnds.begin());
}

float Calibration::chance(int32_t depth, float claimed, float expected) const {
  const Cell& cell = cells_[cell_of(depth, claimed)];
  const float rate = cell.total == 0 ? expected : cell.right / cell.total;
  return std::clamp(rate, kLeast, 1 - kLeast);
}

void Calibration::count(int32_t depth, float claimed, float expected, bool is_right) {
  Cell& cell = cells_[cell_of(depth, claimed)];
  if (cell.total == 0) {
    cell = {.right = memory_.prior_weight * expected, .total = memory_.prior_weight};
  }
  const float kept = 1 - 1 / memory_.window;
  cell.right = cell.right * kept + (is_right ? 1.0f : 0.0f);
  cell.total = cell.total * kept + 1;
}

Calibration& Calibrations::of(std::string_view drafter) {
  const auto found = drafters_.find(drafter);
  if (found != drafters_.end()) return found->second;
  return drafters_.emplace(std::string(drafter), Calibration(Calibration::kShared)).first->second;
}

}  // namespace cairn::draft
