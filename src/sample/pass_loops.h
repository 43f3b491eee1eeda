// The templates of the loops in sample/passes.h, over a lane type V of base/lanes.h with V::kWidth
// lanes, V::load(values), v.store(out) and V::above_bits(values, floor): a bit for each of
// kPassLanes values that is above. Included once by each file that is compiled for an instruction
// set. Thread rule: pure.
#pragma once

#include <cfloat>

#include "base/elementary.h"
#include "sample/passes.h"

namespace cairn::sample::loops {

constexpr float kNone = -__builtin_inff();

template <class V>
constexpr size_t kVectors = kPassLanes / V::kWidth;

// Calls use(values) for each kPassLanes of them, the last ones padded with neutral values.
template <class Use>
[[gnu::always_inline]] inline void for_each_piece(const float* values, size_t count, Use use) {
  size_t i = 0;
  for (; i + kPassLanes <= count; i += kPassLanes) use(values + i);
  if (i == count) return;
  float rest[kPassLanes];
  for (size_t j = 0; j < kPassLanes; ++j) rest[j] = i + j < count ? values[i + j] : kNone;
  use(rest);
}

template <class V>
[[gnu::always_inline]] inline float largest(const float* values, size_t count) {
  V lanes[kVectors<V>];
  for (V& lane : lanes) lane = V(kNone);
  for_each_piece(
      values, count, [&](const float* piece) __attribute__((always_inline)) {
        for (size_t k = 0; k < kVectors<V>; ++k) {
          const V x = V::load(piece + k * V::kWidth);
          lanes[k] = select(lanes[k] < x, x, lanes[k]);
        }
      });
  float all[kPassLanes];
  for (size_t k = 0; k < kVectors<V>; ++k) lanes[k].store(all + k * V::kWidth);
  float best = kNone;
  for (const float lane : all) best = lane > best ? lane : best;
  return best > FLT_MAX ? FLT_MAX : best;
}

template <class V>
[[gnu::always_inline]] inline size_t find_above(const float* values, size_t count, float floor,
                                                uint32_t* indices) {
  size_t found = 0;
  uint32_t first = 0;
  for_each_piece(
      values, count, [&](const float* piece) __attribute__((always_inline)) {
        for (uint32_t bits = V::above_bits(piece, floor); bits != 0; bits &= bits - 1) {
          indices[found++] = first + uint32_t(__builtin_ctz(bits));
        }
        first += uint32_t(kPassLanes);
      });
  return found;
}

template <class V>
[[gnu::always_inline]] inline ExpSums exp_sums(const float* values, size_t count, float reference) {
  V totals[kVectors<V>], weighted[kVectors<V>];
  for (size_t k = 0; k < kVectors<V>; ++k) totals[k] = weighted[k] = V(0.0f);
  for_each_piece(
      values, count, [&](const float* piece) __attribute__((always_inline)) {
        for (size_t k = 0; k < kVectors<V>; ++k) {
          const V raw = V::load(piece + k * V::kWidth);
          // Also true for NaN, which the next comparison then leaves out.
          const V x = select(V(FLT_MAX) < raw, V(FLT_MAX), raw);
          const V below = x - V(reference);
          const auto counts = V(kNone) < x;
          const V power = elementary::exp(below);
          totals[k] = totals[k] + select(counts, power, V(0.0f));
          weighted[k] = weighted[k] + select(counts, power * below, V(0.0f));
        }
      });
  float all[kPassLanes], all_weighted[kPassLanes];
  for (size_t k = 0; k < kVectors<V>; ++k) {
    totals[k].store(all + k * V::kWidth);
    weighted[k].store(all_weighted + k * V::kWidth);
  }
  ExpSums sums;
  for (size_t j = 0; j < kPassLanes; ++j) {
    sums.total += double(all[j]);
    sums.weighted += double(all_weighted[j]);
  }
  return sums;
}

template <class V>
[[gnu::always_inline]] inline ValueSums value_sums(const float* values, size_t count,
                                                   float reference) {
  V totals[kVectors<V>], squares[kVectors<V>], counts[kVectors<V>];
  for (size_t k = 0; k < kVectors<V>; ++k) totals[k] = squares[k] = counts[k] = V(0.0f);
  for_each_piece(
      values, count, [&](const float* piece) __attribute__((always_inline)) {
        for (size_t k = 0; k < kVectors<V>; ++k) {
          const V raw = V::load(piece + k * V::kWidth);
          const V x = select(V(FLT_MAX) < raw, V(FLT_MAX), raw);
          const auto has = V(kNone) < x;
          const V off = select(has, x - V(reference), V(0.0f));
          totals[k] = totals[k] + off;
          squares[k] = fma(off, off, squares[k]);
          counts[k] = counts[k] + select(has, V(1.0f), V(0.0f));
        }
      });
  float all[kPassLanes], all_squares[kPassLanes], all_counts[kPassLanes];
  for (size_t k = 0; k < kVectors<V>; ++k) {
    totals[k].store(all + k * V::kWidth);
    squares[k].store(all_squares + k * V::kWidth);
    counts[k].store(all_counts + k * V::kWidth);
  }
  ValueSums sums;
  for (size_t j = 0; j < kPassLanes; ++j) {
    sums.total += double(all[j]);
    sums.squares += double(all_squares[j]);
    sums.count += size_t(all_counts[j]);
  }
  return sums;
}

template <class V>
[[gnu::always_inline]] inline void divide(const float* values, size_t count, float divisor,
                                          float* out) {
  // A tiny divisor may overflow; the largest numbers then tie, as they nearly do anyway.
  for_each_piece(
      values, count, [&](const float* piece) __attribute__((always_inline)) {
        float quotients[kPassLanes];
        for (size_t k = 0; k < kVectors<V>; ++k) {
          const V x = V::load(piece + k * V::kWidth);
          const V quotient = elementary::clamp(x / V(divisor), -FLT_MAX, FLT_MAX);
          select(V(kNone) < x, quotient, V(kNone)).store(quotients + k * V::kWidth);
        }
        for (size_t j = 0; j < kPassLanes && count > 0; ++j, --count) *out++ = quotients[j];
      });
}

// From the `first`th value on.
[[gnu::always_inline]] inline void keep_allowed(const float* values, size_t first, size_t count,
                                                const uint64_t* words, float* out) {
  for (size_t i = first; i < count; ++i) {
    out[i] = (words[i / 64] >> (i % 64) & 1) != 0 ? values[i] : kNone;
  }
}

template <class V>
[[gnu::always_inline]] inline void nearness(const float* values, size_t count, float center,
                                            float* out) {
  for_each_piece(
      values, count, [&](const float* piece) __attribute__((always_inline)) {
        float scores[kPassLanes];
        for (size_t k = 0; k < kVectors<V>; ++k) {
          const V raw = V::load(piece + k * V::kWidth);
          const V x = select(V(FLT_MAX) < raw, V(FLT_MAX), raw);
          const V distance = elementary::abs(x - V(center));
          const V score = V(0.0f) - select(V(FLT_MAX) < distance, V(FLT_MAX), distance);
          select(V(kNone) < x, score, V(kNone)).store(scores + k * V::kWidth);
        }
        for (size_t j = 0; j < kPassLanes && count > 0; ++j, --count) *out++ = scores[j];
      });
}

}  // namespace cairn::sample::loops
