// The parts of a router's row that instruction sets compute in their own ways, as plain functions
// of pointers, so that files compiled for one of them can include this. All give the same bits.
#pragma once

#include <cstdint>

namespace cairn::reference {

// The `best_count` largest of `count` scores: their indices go to `best`, the largest first; of
// equal ones the lower index comes first, NaN is below everything, and -0 equals +0.
// REQUIRES: best_count <= count.
struct TakeBest {
  const float* scores;
  int32_t* best;
  int32_t count, best_count;
  int32_t* room;  // take_best_room() long; arbitrary before and after.
};

// Integers for a copy of the scores in blocks of 8 or 16, and for a maximum of each block; both in
// whole blocks of 16.
constexpr int32_t take_best_room(int32_t count) {
  const int32_t padded = (count + 15) / 16 * 16;
  return padded + (padded / 8 + 15) / 16 * 16;
}

struct RouteFunctions {
  // In place: exp(x - max) divided by their sum. A NaN is passed over by the maximum and then makes
  // the sum, and so every number, NaN.
  void (*softmax)(float* x, int32_t count);
  void (*sigmoid)(float* x, int32_t count);  // In place.
  // out = exp(x - shift)
  void (*exp_minus)(const float* x, float shift, float* out, int32_t count);
  void (*take_best)(const TakeBest& args);
};

}  // namespace cairn::reference
