// How likely a copy goes on, by the number of tokens that it was right of: what drafters claim of a
// text that is followed; the speculator calibrates it. Thread rule: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace cairn::draft {

// Shorter matches are chance.
inline constexpr int32_t kMatchLeast = 2;

inline float match_chance(int32_t length) {
  // Of the lengths 2 to 8; then slowly towards 0.97. Each value is in a cell of its own of the
  // calibration as far as there are as many.
  constexpr std::array<float, 7> kChances = {.25f, .4f, .5f, .65f, .75f, .82f, .86f};
  if (length < kMatchLeast) return .1f;
  const auto place = std::min(size_t(length - kMatchLeast), kChances.size() - 1);
  if (length <= 8) return kChances[place];
  return length <= 16 ? .92f : length <= 32 ? .96f : .985f;
}

}  // namespace cairn::draft
