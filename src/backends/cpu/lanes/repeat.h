// Loops whose count and index the compiler knows from the start: what they index by a constant can
// live in registers, also where an ordinary loop would be unrolled too late for that.
#pragma once

#include <cstdint>

namespace cairn {
namespace {

template <int32_t I>
struct Index {
  [[gnu::always_inline]] constexpr operator int32_t() const { return I; }
};

template <int32_t I, int32_t N, class Body>
[[gnu::always_inline]] inline void repeat_from(const Body& body) {
  if constexpr (I < N) {
    body(Index<I>{});
    repeat_from<I + 1, N>(body);
  }
}

// body(0), body(1), …, body(N - 1).
template <int32_t N, class Body>
[[gnu::always_inline]] inline void repeat(const Body& body) {
  repeat_from<0, N>(body);
}

// body(Index<I>()), where I is `index`, which lies in [kLow, kHigh].
template <int32_t kLow, int32_t kHigh, class Body>
[[gnu::always_inline]] inline auto with_index(int32_t index, const Body& body) {
  if constexpr (kLow < kHigh) {
    if (index < kHigh) return with_index<kLow, kHigh - 1>(index, body);
  }
  return body(Index<kHigh>{});
}

}  // namespace
}  // namespace cairn
