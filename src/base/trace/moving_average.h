// The average of what steps take, which follows the newest ones. Thread-safe: pure.
#pragma once

#include <algorithm>

namespace cairn {

// `weight`: of the newest one. 0: nothing was observed yet. One slow step may count for twice the
// average, not for more.
inline void follow(double& average, double observed, double weight) {
  constexpr double kSlower = 2;
  if (average == 0) {
    average = observed;
  } else {
    average += weight * (std::min(observed, kSlower * average) - average);
  }
}

}  // namespace cairn
