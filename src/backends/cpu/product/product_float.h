// Products of float weights: acc = fma(w[k], x[k], acc), k ascending, with vectors across outputs.
// An accumulator is a chain of dependent steps, so several groups of outputs and several rows run
// side by side. Many rows of narrow weights multiply panels: weights that were widened once.
#pragma once

#include <cstdint>

#include "backends/cpu/lanes/repeat.h"
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

// *x * w + sum, for R rows. Beside what widens narrow weights for several rows no arithmetic unit
// is left for broadcasts; else weights share one, which takes fewer loads.
template <class V, Plane plane, int R>
[[gnu::always_inline]] inline typename V::Floats multiply_add(const float* x, typename V::Floats w,
                                                              typename V::Floats sum) {
  return plane == Plane::f32 || R == 1 ? V::fma(w, V::broadcast(*x), sum) : V::fma_of(x, w, sum);
}

// R rows from `row` on times G groups from `groups` on.
template <class V, Plane plane, int R, int G>
void multiply_float_groups(const Product& product, int32_t row, int32_t first_output) {
  constexpr int kVectors = kGroupRows / V::kLanes;
  constexpr int kColumn = plane_bytes(plane);
  const int64_t group_bytes = product.weight->group_bytes;
  const uint8_t* groups = product.groups + first_output / kGroupRows * group_bytes;
  const float* x[R];
  repeat<R>([&](auto r) { x[r] = product.rows[row + r].x; });
  typename V::Floats acc[R][G * kVectors];
  repeat<R>([&](auto r) { repeat<G * kVectors>([&](auto n) { acc[r][n] = V::zero(); }); });
  const int32_t cols = product.weight->cols;
  for (int32_t k = 0; k < cols; ++k) {
    if constexpr (R == 1) fetch_column<V, plane, G>(groups, group_bytes, cols, k);
    repeat<G * kVectors>([&](auto n) {
      const uint8_t* at = groups + n / kVectors * group_bytes + int64_t(k) * kColumn;
      const typename V::Floats w = load_column<V, plane>(at + n % kVectors * (kColumn / kVectors));
      repeat<R>([&](auto r) { acc[r][n] = multiply_add<V, plane, R>(x[r] + k, w, acc[r][n]); });
    });
  }
  repeat<R>([&](auto r) {
    repeat<G * kVectors>([&](auto n) {
      store_outputs<V>(product, row + r, first_output + n * V::kLanes, acc[r][n]);
    });
  });
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

// Rows that are worth widening weights once for all of them.
inline constexpr int kFloatPanelRowsMin = 64;
// Rows whose sums are in registers at a time, for four vectors of outputs or two: a number of a row
// is read once for as many products.
inline constexpr int kFloatPanelTileRows = 6;
static_assert(kFloatPanelTileRows <= kTileRows);  // Room for sums past the last row.
// A panel lies in the second cache: so many columns ahead its lines are asked into the first.
inline constexpr int kFloatPanelAhead = 8;
template <class V>
inline constexpr int kFloatPanelGroups = V::kLanes == kGroupRows ? kFloatPanelGroupsMax : 1;

// Widens the columns [first, first + count) of the groups of a panel.
template <class V, Plane plane>
void widen_panel(const PackedMatrix& weight, const uint8_t* groups, int32_t first, int32_t count,
                 float* panel) {
  constexpr int kVectors = kGroupRows / V::kLanes, kColumn = plane_bytes(plane);
  for (int32_t k = first; k < first + count; ++k) {
#pragma GCC unroll 8
    for (int n = 0; n < kFloatPanelGroups<V> * kVectors; ++n, panel += V::kLanes) {
      const uint8_t* at = groups + n / kVectors * weight.group_bytes + int64_t(k) * kColumn;
      V::store(panel, load_column<V, plane>(at + n % kVectors * (kColumn / kVectors)));
    }
  }
}

// `count` columns from `first` on of the outputs from `first_output` on: [count][outputs]; and the
// sums of all rows so far, [row][outputs].
struct FloatPanel {
  const float* weights;
  int32_t first, count, first_output;
  float* sums;
};

// R rows from `row` on go over a panel of N vectors: behind the last column their sums are the
// product's outputs.
template <class V, int R, int N>
void multiply_float_panel(const Product& product, const FloatPanel& panel, int32_t row) {
  const float* x[R];
  float* const sums = panel.sums + row * N * V::kLanes;
  typename V::Floats acc[R][N];
  for (int r = 0; r < R; ++r) {
    const int32_t last = product.row_count - 1;
    x[r] = product.rows[row + r < last ? row + r : last].x + panel.first;
    for (int n = 0; n < N; ++n) {
      acc[r][n] = panel.first == 0 ? V::zero() : V::load(sums + (r * N + n) * V::kLanes);
    }
  }
  const float* weights = panel.weights;
  for (int32_t k = 0; k < panel.count; ++k, weights += N * V::kLanes) {
    typename V::Floats w[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      w[n] = V::load(weights + n * V::kLanes);
      constexpr int kLineFloats = 64 / sizeof(float);
      if (n * V::kLanes % kLineFloats == 0) {
        __builtin_prefetch(weights + (kFloatPanelAhead * N + n) * V::kLanes);
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const typename V::Floats value = V::broadcast(x[r][k]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) acc[r][n] = V::fma(w[n], value, acc[r][n]);
    }
  }
  const bool is_last = panel.first + panel.count == product.weight->cols;
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) {
      if (is_last) {
        store_outputs<V>(product, row + r, panel.first_output + n * V::kLanes, acc[r][n]);
      } else {
        V::store(sums + (r * N + n) * V::kLanes, acc[r][n]);
      }
    }
  }
}

// All rows times the groups from `first_output` on, panel by panel.
template <class V, Plane plane>
void multiply_float_panels(const Product& product, int32_t first_output) {
  constexpr int kOutputs = kFloatPanelGroups<V> * kGroupRows, kVectors = kOutputs / V::kLanes;
  const PackedMatrix& weight = *product.weight;
  const uint8_t* groups = product.groups + first_output / kGroupRows * weight.group_bytes;
  float* const weights = reinterpret_cast<float*>(product.scratch);
  float* const sums = weights + kFloatPanelColumns * kOutputs;
  for (int32_t first = 0; first < weight.cols; first += kFloatPanelColumns) {
    const int32_t rest = weight.cols - first;
    const int32_t count = rest < kFloatPanelColumns ? rest : kFloatPanelColumns;
    widen_panel<V, plane>(weight, groups, first, count, weights);
    const FloatPanel panel{weights, first, count, first_output, sums};
    for (int32_t row = 0; row < product.row_count; row += kFloatPanelTileRows) {
      const int32_t left = product.row_count - row;
      if (left <= 2) {
        multiply_float_panel<V, 2, kVectors>(product, panel, row);
      } else if (left <= 4) {
        multiply_float_panel<V, 4, kVectors>(product, panel, row);
      } else {
        multiply_float_panel<V, kFloatPanelTileRows, kVectors>(product, panel, row);
      }
    }
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
  if (product.row_count <= 4) {
    return with_index<2, 4>(product.row_count, [&]<int R>(Index<R>) {
      multiply_float_rows<V, plane, R, kFewRowsGroups>(product, 0, 0, end);
    });
  }
  int32_t done = 0;
  if (plane != Plane::f32 && product.row_count >= kFloatPanelRowsMin) {
    constexpr int kOutputs = kFloatPanelGroups<V> * kGroupRows;
    for (; done + kOutputs <= end; done += kOutputs) {
      multiply_float_panels<V, plane>(product, done);
    }
  }
  // Each run of groups stays in the second level cache while all rows pass over it.
  for (int32_t output = done; output < end; output += kGroups * kGroupRows) {
    const int32_t next = output + kGroups * kGroupRows, stop = next < end ? next : end;
    int32_t count = 0;
    for (int32_t row = 0; row < product.row_count; row += count) {
      count = block_rows(product.row_count - row, kRows);
      with_index<2, kRows>(count, [&]<int R>(Index<R>) {
        multiply_float_rows<V, plane, R, kGroups>(product, row, output, stop);
      });
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
