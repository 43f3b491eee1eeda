// For benchmarks: prompts that no model expects, and what a list of measured values says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "base/ids.h"

namespace cairn::bench {

inline std::vector<Token> random_tokens(std::mt19937& random, int32_t count,
                                        int32_t vocabulary_count) {
  std::vector<Token> tokens;
  for (int32_t index = 0; index < count; ++index) {
    tokens.push_back(Token(int32_t(random() % uint32_t(vocabulary_count))));
  }
  return tokens;
}

// The value that the given part (0 to 1) of all values does not exceed. REQUIRES: some values.
inline double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[size_t(part * double(values.size() - 1))];
}

}  // namespace cairn::bench
