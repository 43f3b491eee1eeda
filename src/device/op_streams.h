// The ops of models that carry several residual streams side by side in a row (AltUp, Baykal et
// al., 2023) and of activations that keep only a row's largest elements. A part of the closed list
// of device/op.h, with its rules.
#pragma once

#include "device/values.h"

namespace cairn::op {

// Each stream i of out = the same stream of a + sum over j of (coefficients[i * m + j] + offset) *
// stream j of b, fma, j ascending, starting from a. Coefficients that do not exist are 0. `out` may
// be the same rows as a.
struct MixStreams {
  Rows a, out;        // [tokens, n * width]
  Rows b;             // [tokens, m * width]
  Rows coefficients;  // [tokens, n * m]
  int32_t width = 0;
  float offset = 0;
};

// `first`, then each stream of x scaled so that its root mean square is that of `first`: x *
// (r(first) / r(x)), where r(x)^2 is taken as at least `floor`.
struct MatchMagnitude {
  Rows first;  // [tokens, width]
  Rows x;      // [tokens, n * width]
  Rows out;    // [tokens, (1 + n) * width]
  float floor = 0;
};

// Gemma 3n's gaussian top-k: keeps what exceeds the row's mean by more than `deviations` standard
// deviations, reduced by that threshold, and 0 elsewhere: out = max((x - mean) - deviations *
// sqrt(mean((x - mean)^2)), 0); NaN gives 0.
struct GaussianTopk {
  Rows x, out;
  float deviations = 0;
};

}  // namespace cairn::op
