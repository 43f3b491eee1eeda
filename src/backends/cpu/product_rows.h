// Activation rows as the product kernels read them: the rows of one pass interleaved unit by unit,
// so that every operand lies at a constant distance from one pointer. One row alone is read where
// it lies.
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cpu/product.h"

namespace cairn::cpu {
namespace {

// For R rows; per unit: q [R][32], scales [R], starts [halves][R], sums [halves][R].
struct RowsView {
  const int8_t* q;
  const float* scales;
  const int32_t* starts;  // -bias * the sum of the q: what made weights unsigned is taken off.
  const float* sums;      // Of the q, for formats with offsets.
};

// Where rows are interleaved to.
struct RowsBuffer {
  int8_t* q;
  float* scales;
  int32_t* starts;
  float* sums;

  RowsView view() const { return {q, scales, starts, sums}; }
};

// In interleaved_bytes(row_units) bytes of scratch.
inline RowsBuffer rows_buffer(std::byte* at, int64_t row_units) {
  const auto take = [&at](int64_t bytes) {
    std::byte* part = at;
    at += (bytes + 63) / 64 * 64;
    return part;
  };
  RowsBuffer buffer;
  buffer.q = reinterpret_cast<int8_t*>(take(row_units * 32));
  buffer.scales = reinterpret_cast<float*>(take(row_units * 4));
  buffer.starts = reinterpret_cast<int32_t*>(take(row_units * 8));
  buffer.sums = reinterpret_cast<float*>(take(row_units * 8));
  return buffer;
}

// The units [first, first + count) of R rows from `row` on; rows past the product's end repeat the
// last one. A row alone keeps its bytes and scales where they lie.
template <bool kHalves, bool kOffsets, int R>
RowsView interleave_rows(const Product& product, int32_t row, int32_t first, int32_t count,
                         int32_t bias, const RowsBuffer& to) {
  constexpr int kHalfCount = kHalves ? 2 : 1;
  for (int r = 0; r < R; ++r) {
    const ProductRow& source =
        product.rows[row + r < product.row_count ? row + r : product.row_count - 1];
    const int8_t* q = source.q + int64_t(first) * 32;
    const float* scales = source.scales + first;
    const int32_t* sums = source.sums + 2 * int64_t(first);
    for (int32_t unit = 0; unit < count; ++unit) {
      if constexpr (R > 1) {
        std::memcpy(to.q + (int64_t(unit) * R + r) * 32, q + int64_t(unit) * 32, 32);
        to.scales[unit * R + r] = scales[unit];
      }
      for (int half = 0; half < kHalfCount; ++half) {
        const int32_t sum = kHalves ? sums[2 * unit + half] : sums[2 * unit] + sums[2 * unit + 1];
        to.starts[(unit * kHalfCount + half) * R + r] = -bias * sum;
        if constexpr (kOffsets) to.sums[(unit * kHalfCount + half) * R + r] = float(sum);
      }
    }
  }
  if constexpr (R > 1) return to.view();
  return {product.rows[row].q + int64_t(first) * 32, product.rows[row].scales + first, to.starts,
          to.sums};
}

}  // namespace
}  // namespace cairn::cpu
