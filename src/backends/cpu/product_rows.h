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

// Where rows are interleaved to; 64-byte aligned parts of the product's scratch.
struct RowsBuffer {
  int8_t* q;
  float* scales;
  int32_t* starts;
  float* sums;
};

inline RowsBuffer rows_buffer(const Product& product) {
  const int64_t per_unit = int64_t(unit_count(*product.weight)) * kRowsAtOnce;
  std::byte* at = product.scratch;
  const auto take = [&at](int64_t bytes) {
    std::byte* part = at;
    at += (bytes + 63) / 64 * 64;
    return part;
  };
  RowsBuffer buffer;
  buffer.q = reinterpret_cast<int8_t*>(take(per_unit * 32));
  buffer.scales = reinterpret_cast<float*>(take(per_unit * 4));
  buffer.starts = reinterpret_cast<int32_t*>(take(per_unit * 8));
  buffer.sums = reinterpret_cast<float*>(take(per_unit * 8));
  return buffer;
}

// What a row's sums become, for the units [first, end).
template <bool kHalves, bool kOffsets, int R>
void fill_sums(const int32_t* sums, int32_t first, int32_t end, int32_t bias,
               int32_t* __restrict starts, float* __restrict floats) {
  constexpr int kHalfCount = kHalves ? 2 : 1;
  for (int32_t unit = first; unit < end; ++unit) {
    for (int half = 0; half < kHalfCount; ++half) {
      const int32_t sum = kHalves ? sums[2 * unit + half] : sums[2 * unit] + sums[2 * unit + 1];
      starts[(unit * kHalfCount + half) * R] = -bias * sum;
      if constexpr (kOffsets) floats[(unit * kHalfCount + half) * R] = float(sum);
    }
  }
}

// The units [first, end) of a row.
template <int R>
void fill_row(const ProductRow& source, int32_t first, int32_t end, int8_t* __restrict q,
              float* __restrict scales) {
  for (int32_t unit = first; unit < end; ++unit) {
    std::memcpy(q + int64_t(unit) * R * 32, source.q + int64_t(unit) * 32, 32);
  }
  for (int32_t unit = first; unit < end; ++unit) scales[unit * R] = source.scales[unit];
}

// The rows [first, first + R) of the product; those past its end repeat the last one. Some units of
// all rows at a time, so that what is written stays in the first level cache until it is complete.
template <bool kHalves, bool kOffsets, int R>
RowsView interleave_rows(const Product& product, int32_t first, int32_t bias,
                         const RowsBuffer& buffer) {
  constexpr int32_t kUnits = 32;
  const int32_t units = unit_count(*product.weight);
  for (int32_t unit = 0; unit < units; unit += kUnits) {
    const int32_t end = unit + kUnits < units ? unit + kUnits : units;
    for (int row = 0; row < R; ++row) {
      const int32_t index = first + row < product.row_count ? first + row : product.row_count - 1;
      const ProductRow& source = product.rows[index];
      fill_sums<kHalves, kOffsets, R>(source.sums, unit, end, bias, buffer.starts + row,
                                      buffer.sums + row);
      if constexpr (R > 1) {
        fill_row<R>(source, unit, end, buffer.q + row * 32, buffer.scales + row);
      }
    }
  }
  if constexpr (R == 1) {
    return {product.rows[first].q, product.rows[first].scales, buffer.starts, buffer.sums};
  }
  return {buffer.q, buffer.scales, buffer.starts, buffer.sums};
}

}  // namespace
}  // namespace cairn::cpu
