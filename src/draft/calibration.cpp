// Rates in cells; each forgets as it counts.
#include "draft/calibration.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

namespace cairn::draft {

namespace {

// Upper ends of the claimed chances that share a cell; close where a small difference decides
// whether a row is worth its time, at both ends.
constexpr std::array<float, 14> kChanceEnds = {.02f, .05f, .1f, .2f,  .3f,  .45f,  .6f,
                                               .7f,  .8f,  .9f, .95f, .97f, .985f, .993f};
// No rate is certain: one success in so many is always possible, and one failure.
constexpr float kLeast = 0.002f;
// Of the lead that one rate has, what is left after another token; and how large it can become:
// what was better for long is given up in a few tokens.
constexpr float kLeadKept = 0.9f;
constexpr float kLeadMost = 4;

}  // namespace

// Depths 0, 1, 2–3, 4–7, 8–15, 16–31, 32–63 and more share a cell each.
size_t Calibration::cell_of(int32_t depth, float claimed) {
  const auto depth_row = std::min(size_t(std::bit_width(uint32_t(depth))), kDepths - 1);
  const auto end = std::upper_bound(kChanceEnds.begin(), kChanceEnds.end(), claimed);
  return depth_row * kChances + size_t(end - kChanceEnds.begin());
}

float Calibration::Rate::value(float expected) const {
  return std::clamp(total == 0 ? expected : right / total, kLeast, 1 - kLeast);
}

void Calibration::Rate::count(float window, bool is_right) {
  const float kept = 1 - 1 / window;
  right = right * kept + (is_right ? 1.0f : 0.0f);
  total = total * kept + 1;
}

float Calibration::fast_part() const {
  return memory_.fast_window == 0 ? 0 : 1 / (1 + std::exp(-fast_lead_));
}

float Calibration::chance(int32_t depth, float claimed, float expected) const {
  const Cell& cell = cells_[cell_of(depth, claimed)];
  const float slow = cell.slow.value(expected);
  return slow + fast_part() * (cell.fast.value(expected) - slow);
}

void Calibration::count(int32_t depth, float claimed, float expected, bool is_right) {
  Cell& cell = cells_[cell_of(depth, claimed)];
  if (cell.slow.total == 0) {
    const float weight = memory_.prior_weight;
    cell.slow = {.right = weight * expected, .total = weight};
    cell.fast = cell.slow;
  }
  if (memory_.fast_window > 0) {
    const float slow = cell.slow.value(expected);
    const float fast = cell.fast.value(expected);
    const float lead = is_right ? std::log(fast / slow) : std::log((1 - fast) / (1 - slow));
    fast_lead_ = std::clamp(kLeadKept * fast_lead_ + lead, -kLeadMost, kLeadMost);
    cell.fast.count(memory_.fast_window, is_right);
  }
  cell.slow.count(memory_.slow_window, is_right);
}

Calibration& Calibrations::of(std::string_view drafter) {
  const auto found = drafters_.find(drafter);
  if (found != drafters_.end()) return found->second;
  return drafters_.emplace(std::string(drafter), Calibration(Calibration::kShared)).first->second;
}

}  // namespace cairn::draft
