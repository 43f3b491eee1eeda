// Cuts as they would be made one after the other while the text grows.
#include "engine/context_cut.h"

#include <algorithm>

namespace cairn {

namespace {

using Starts = std::span<const int32_t>;

// Whatever stands before the first message of the user stays as well: the system message, and the
// template's words that begin a turn, which the first turn that stays then has before it. So does
// all of a turn that `keep_tokens` ends in, unless it is long.
int32_t kept_tokens(Starts starts, const ContextLimits& limits) {
  const auto next = std::lower_bound(starts.begin(), starts.end(), limits.keep_tokens);
  if (next == starts.end()) return limits.keep_tokens;
  // Behind what is kept a context needs room for two tokens.
  const int32_t most = next == starts.begin() ? limits.context_tokens - 2  //
                                              : limits.context_tokens / 2;
  return *next <= most ? *next : limits.keep_tokens;
}

// The next place behind `begin` from which on tokens stay; `full`: how much of the text there was
// when that was asked. At least half of the room goes where turns allow that.
int64_t next_begin(Starts starts, int64_t begin, int64_t full, int64_t half) {
  const auto behind = std::upper_bound(starts.begin(), starts.end(), begin);
  const auto unknown = std::upper_bound(behind, starts.end(), full);
  const auto wanted = std::lower_bound(behind, unknown, begin + half);
  if (wanted != unknown) return *wanted;
  if (behind != unknown) return *(unknown - 1);
  return unknown != starts.end() ? *unknown : begin + half;
}

}  // namespace

ContextCut cut_context(int64_t token_count, Starts turn_starts, const ContextLimits& limits) {
  const Starts starts = turn_starts.first(size_t(
      std::lower_bound(turn_starts.begin(), turn_starts.end(), token_count) - turn_starts.begin()));
  ContextCut cut{.kept = kept_tokens(starts, limits)};
  const int64_t half = (limits.context_tokens - cut.kept) / 2;
  int64_t left_out = 0;
  while (token_count - left_out > limits.context_tokens) {
    const int64_t begin = cut.kept + left_out, full = limits.context_tokens + left_out;
    left_out = next_begin(starts, begin, full, half) - cut.kept;
  }
  cut.left_out = int32_t(left_out);
  cut.turns = int32_t(std::count_if(starts.begin(), starts.end(), [&](int32_t start) {
    return start > cut.kept && start <= cut.kept + cut.left_out;
  }));
  return cut;
}

}  // namespace cairn
