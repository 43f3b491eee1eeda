// Activation rows as the product kernels read them: some rows side by side, kPanelUnits units at a
// time, so that every operand lies at a constant distance from one pointer and rows are copied in
// long pieces. One row alone is read where it lies.
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cpu/product/product.h"

namespace cairn::cpu {
namespace {

// How many rows are multiplied together when `rest` are left, of `most` that can be: all of them up
// to that; of more, but fewer than twice as many, half.
constexpr int32_t block_rows(int32_t rest, int32_t most) {
  if (rest <= most) return rest;
  return rest < 2 * most ? (rest + 1) / 2 : most;
}

// R rows, of each kPanelUnits units: q [R][units][32], scales [R][units], starts and sums
// [halves][R][units]; then the next units.
struct RowsView {
  const int8_t* q;
  const float* scales;
  const int32_t* starts;  // -bias * the sum of the q: what made weights unsigned is taken off.
  const float* sums;      // Of the q, for formats with offsets.
};

// Where rows are copied to.
struct RowsBuffer {
  int8_t* q;
  float* scales;
  int32_t* starts;
  float* sums;

  RowsView view() const { return {q, scales, starts, sums}; }
};

// A view or a buffer of R rows goes on to its next kPanelUnits units.
template <int R, int kHalfCount, class Rows>
void to_next_units(Rows& rows) {
  rows.q += R * kPanelUnits * 32;
  rows.scales += R * kPanelUnits;
  rows.starts += kHalfCount * R * kPanelUnits;
  rows.sums += kHalfCount * R * kPanelUnits;
}

// In side_by_side_bytes(row_units) bytes of scratch.
inline RowsBuffer rows_buffer(std::byte* at, int64_t row_units) {
  const auto take = [&at](int64_t bytes) {
    std::byte* part = at;
    at += bytes;
    return part;
  };
  RowsBuffer buffer;
  buffer.q = reinterpret_cast<int8_t*>(take(row_units * 32));
  buffer.scales = reinterpret_cast<float*>(take(row_units * 4));
  buffer.starts = reinterpret_cast<int32_t*>(take(row_units * 8));
  buffer.sums = reinterpret_cast<float*>(take(row_units * 8));
  return buffer;
}

// What the sums of `count` units become.
template <bool kHalves, bool kOffsets>
[[gnu::always_inline]] inline void convert_sums(const int32_t* __restrict sums, int32_t count,
                                                int32_t bias, int32_t* __restrict starts,
                                                float* __restrict floats, int half) {
  for (int32_t unit = 0; unit < count; ++unit) {
    const int32_t sum = kHalves ? sums[2 * unit + half] : sums[2 * unit] + sums[2 * unit + 1];
    starts[unit] = -bias * sum;
    if constexpr (kOffsets) floats[unit] = float(sum);
  }
}

// `count` units of one row, from `first` on, as the r-th of R rows. Inlined twice: with a count
// that is known, the copies are a few vectors.
template <bool kHalves, bool kOffsets, int R>
[[gnu::always_inline]] inline void put_row(const ProductRow& source, int64_t first, int32_t count,
                                           int32_t bias, int r, const RowsBuffer& to) {
  if constexpr (R > 1) {
    std::memcpy(to.q + r * kPanelUnits * 32, source.q + first * 32, size_t(count) * 32);
    std::memcpy(to.scales + r * kPanelUnits, source.scales + first, size_t(count) * 4);
  }
  for (int half = 0; half < (kHalves ? 2 : 1); ++half) {
    const int offset = (half * R + r) * kPanelUnits;
    convert_sums<kHalves, kOffsets>(source.sums + 2 * first, count, bias, to.starts + offset,
                                    to.sums + offset, half);
  }
}

// The units [first, first + count) of R rows from `row` on; rows past the product's end repeat the
// last one.
template <bool kHalves, bool kOffsets, int R>
RowsView put_side_by_side(const Product& product, int32_t row, int32_t first, int32_t count,
                          int32_t bias, RowsBuffer to) {
  const RowsView view = to.view();
  for (int32_t unit = 0; unit < count; unit += kPanelUnits) {
    for (int r = 0; r < R; ++r) {
      const int32_t index = row + r < product.row_count ? row + r : product.row_count - 1;
      const ProductRow& source = product.rows[index];
      if (count - unit >= kPanelUnits) {
        put_row<kHalves, kOffsets, R>(source, first + unit, kPanelUnits, bias, r, to);
      } else {
        put_row<kHalves, kOffsets, R>(source, first + unit, count - unit, bias, r, to);
      }
    }
    to_next_units<R, kHalves ? 2 : 1>(to);
  }
  if constexpr (R > 1) return view;
  return {product.rows[row].q + int64_t(first) * 32, product.rows[row].scales + first, view.starts,
          view.sums};
}

}  // namespace
}  // namespace cairn::cpu
