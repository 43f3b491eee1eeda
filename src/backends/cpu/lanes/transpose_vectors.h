// Transposes small matrices of vectors in registers: a template, instantiated per instruction set
// by ops_<isa>.cpp. Much faster than gathering the columns one number at a time.
#pragma once

#include "backends/cpu/lanes/repeat.h"

namespace cairn {
namespace {

// The Count vectors, read one after the other, are a matrix [L::kCount][Count]; afterwards vector i
// is its column i. Each round moves the lowest bit of every element's place to the top, so after
// log2(Count) rounds the column stands before the row. REQUIRES: Count is a power of two.
template <class L, int32_t Count>
[[gnu::always_inline]] inline void transpose_vectors(L (&vectors)[Count]) {
  static_assert(Count >= 2 && (Count & (Count - 1)) == 0);
  for (int32_t columns = 1; columns < Count; columns *= 2) {
    L split[Count];
    repeat<Count / 2>([&](auto i) {
      const auto halves = split_pairs(vectors[2 * i], vectors[2 * i + 1]);
      split[i] = halves.even;
      split[Count / 2 + i] = halves.odd;
    });
    repeat<Count>([&](auto i) { vectors[i] = split[i]; });
  }
}

}  // namespace
}  // namespace cairn
