// The arithmetic of toy models: hashes in place of matrices, sums and norms. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/ids.h"
#include "memory/state.h"
#include "memory/variant.h"

namespace cairn::memory::toy {

inline uint64_t mix(uint64_t a, uint64_t b) {
  const uint64_t x = (a ^ (b * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
  return x ^ (x >> 32);
}

// What a token looks like to the first layer of a variant.
inline uint64_t embed(Token token, int32_t position, Variant variant) {
  return mix(uint64_t(index_of(token)) + 1, uint64_t(position) + 1) +
         variant.computation * 0x9e3779b9;
}

// Attention is a sum over the visible positions that knows their order and their number.
inline uint64_t fold(uint64_t sum, uint64_t value) {
  return sum * 0x5851f42d4c957f2du + value + 1;
}

// The first position that a token at `position` sees.
inline int32_t first_visible(const State& state, int32_t position) {
  if (state.kind == State::Kind::window) return std::max(position - state.window + 1, 0);
  if (state.kind == State::Kind::chunked) return position / state.window * state.window;
  return 0;
}

// A recurrent layer's memory: a hash of all inputs, and the last input (as a convolution's tail).
struct ToyState {
  uint64_t digest = 0;
  uint64_t last = 0;

  uint64_t next(uint64_t input) {
    digest = mix(digest, input);
    return mix(digest, std::exchange(last, input));
  }
};

}  // namespace cairn::memory::toy
