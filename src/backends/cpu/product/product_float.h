// Products of float weights: acc = fma(w[k], x[k], acc), k ascending, with vectors across outputs.
// An accumulator is a chain of dependent steps, so several groups of outputs and several rows run
// side by side.
#pragma once

#include <cstdint>

#include "backends/cpu/product/product_tile.h"

namespace cairn::cpu {
namespace {

template <class V, Plane plane>
typename V::Floats load_column(const uint8_t* at) {
  if constexpr (plane == Plane::f16) return V::load_f16(at);
  if constexpr (plane == Plane::bf16) return V::load_bf16(at);
  return V::load_f32(at);
}

// Asks for the line that each of G groups, read side by side, reaches kAhead bytes later: it may be
// of the next G groups.
template <class V, Plane plane, int G>
[[gnu::always_inline]] inline void fetch_column(const uint8_t* groups, int64_t group_bytes,
                                                int32_t cols, int32_t k) {
  constexpr int kColumn = plane_bytes(plane), kAhead = 1024;
  if (int64_t(k) * kColumn % 64 != 0) return;
  const int32_t later = k + kAhead / kColumn;
  const uint8_t* at = later < cols ? groups + int64_t(later) * kColumn
                                   : groups + G * group_bytes + int64_t(later - cols) * kColumn;
#pragma GCC unroll 4
  for (int g = 0; g < G; ++g) V::prefetch(at + g * group_bytes);
}

// R rows from `row` on times G groups from `groups` on.
template <class V, Plane plane, int R, int G>
void multiply_float_groups(const Product& product, int32_t row, int32_t first_output) {
  constexpr int kVectors = kGroupRows / V::kLanes;
  constexpr int kColumn = plane_bytes(plane);
  const int64_t group_bytes = product.weight->group_bytes;
  const uint8_t* groups = product.groups + first_output / kGroupRows * group_bytes;
  const float* x[R];
  for (int r = 0; r < R; ++r) {
    x[r] = product.rows[row + r < product.row_count ? row + r : product.row_count - 1].x;
  }
  typename V::Floats acc[R][G * kVectors];
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < G * kVectors; ++n) acc[r][n] = V::zero();
  }
  const int32_t cols = product.weight->cols;
  for (int32_t k = 0; k < cols; ++k) {
    if constexpr (R == 1) fetch_column<V, plane, G>(groups, group_bytes, cols, k);
#pragma GCC unroll 8
    for (int n = 0; n < G * kVectors; ++n) {
      const uint8_t* at = groups + n / kVectors * group_bytes + int64_t(k) * kColumn;
      const typename V::Floats w = load_column<V, plane>(at + n % kVectors * (kColumn / kVectors));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r][n] = V::fma(w, V::broadcast(x[r][k]), acc[r][n]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < G * kVectors; ++n) {
      store_outputs<V>(product, row + r, first_output + n * V::kLanes, acc[r][n]);
    }
  }
}

// The outputs [first, end), G groups at once and the rest one by one.
template <class V, Plane plane, int R, int G>
void multiply_float_rows(const Product& product, int32_t row, int32_t first, int32_t end) {
  int32_t output = first;
  for (; output + G * kGroupRows <= end; output += G * kGroupRows) {
    multiply_float_groups<V, plane, R, G>(product, row, output);
  }
  for (; output < end; output += kGroupRows) {
    multiply_float_groups<V, plane, R, 1>(product, row, output);
  }
}

// Few rows: several groups hide the latency of the chains and keep reading while one of them comes
// to the end of a page. Many rows hide it themselves.
template <class V, Plane plane>
void multiply_float(const Product& product) {
  constexpr bool kHasManyRegisters = V::kTileRows > 4;
  constexpr int kRows = kHasManyRegisters ? 8 : 4;
  constexpr int kGroups = kHasManyRegisters ? 2 : 1, kFewRowsGroups = kHasManyRegisters ? 4 : 1;
  const int32_t end = (product.output_count + kGroupRows - 1) / kGroupRows * kGroupRows;
  if (product.row_count == 1) return multiply_float_rows<V, plane, 1, 4>(product, 0, 0, end);
  if (product.row_count == 2) {
    return multiply_float_rows<V, plane, 2, kFewRowsGroups>(product, 0, 0, end);
  }
  if (product.row_count <= 4) {
    return multiply_float_rows<V, plane, 4, kFewRowsGroups>(product, 0, 0, end);
  }
  // Each run of groups stays in the second level cache while all rows pass over it.
  for (int32_t output = 0; output < end; output += kGroups * kGroupRows) {
    const int32_t next = output + kGroups * kGroupRows, stop = next < end ? next : end;
    for (int32_t row = 0; row < product.row_count; row += kRows) {
      const int32_t rest = product.row_count - row;
      if (rest <= 2) {
        multiply_float_rows<V, plane, 2, kGroups>(product, row, output, stop);
      } else if (rest <= 4) {
        multiply_float_rows<V, plane, 4, kGroups>(product, row, output, stop);
      } else {
        multiply_float_rows<V, plane, kRows, kGroups>(product, row, output, stop);
      }
    }
  }
}

template <class V>
void multiply_floats(const Product& product) {
  const Plane plane = product.weight->form.plane;
  if (plane == Plane::f16) multiply_float<V, Plane::f16>(product);
  if (plane == Plane::bf16) multiply_float<V, Plane::bf16>(product);
  if (plane == Plane::f32) multiply_float<V, Plane::f32>(product);
}

}  // namespace
}  // namespace cairn::cpu
