// The order in which a sum along a row is made: sixteen partial sums, then a fixed tree. This is
// the one reduction that is not sequential, because it has one output and would be slow otherwise.
// Element i goes to partial i mod 16, i ascending; the tree adds 8+8, 4+4, 2+2, 1+1.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace cairn::reference {

inline float add_partials(float (&partials)[16]) {
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) partials[i] += partials[i + half];
  }
  return partials[0];
}

inline float sum(std::span<const float> x) {
  float partials[16] = {};
  for (size_t i = 0; i < x.size(); ++i) partials[i % 16] += x[i];
  return add_partials(partials);
}

inline float sum_of_squares(std::span<const float> x) {
  float partials[16] = {};
  for (size_t i = 0; i < x.size(); ++i) partials[i % 16] = std::fma(x[i], x[i], partials[i % 16]);
  return add_partials(partials);
}

}  // namespace cairn::reference
