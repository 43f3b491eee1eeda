// The layers that a model can do without best, for each number of them: greedily, each round the
// layer that does the least harm beside those before it. Others search at random (Zhang et al.,
// 2024: Draft & Verify; Xia et al., 2025: SWIFT), which needs many more measurements. Knows no
// engine: whoever asks measures. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"

namespace cairn::measure {

struct SkipScore {
  double divergence = 0;  // Of the model's probabilities from those of all its layers.
  double same_top = 0;    // Share of tokens with the same favourite.
};

struct SkipSet {
  std::vector<int32_t> layers;  // Ascending.
  SkipScore score;
};

struct SkipSearch {
  int32_t layer_count = 0;
  int32_t skipped_max = 0;  // Rounds.
  // How many layers each round after the first tries: those that did the least harm when they were
  // tried last. Harm grows with what else is skipped, but its order changes little.
  int32_t try_count = 8;
  // Errors: unsupported where one of these layers cannot be skipped.
  std::function<Result<SkipScore>(const std::vector<int32_t>& layers)> measure;
  // After each measurement. False ends the search with what was found.
  std::function<bool(int64_t done, int64_t total)> on_progress;
  std::function<void(const SkipSet& found)> on_found;  // After each round.
};

// Sets of 1, 2, … layers: fewer than wanted where no others can be skipped, or it was ended.
// Errors: those of `measure`; unsupported where no layer can be skipped, with the reason for the
// first.
Result<std::vector<SkipSet>> search_skips(const SkipSearch& search);

}  // namespace cairn::measure
