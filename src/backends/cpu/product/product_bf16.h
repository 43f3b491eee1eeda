// What products in bf16 share: windows of columns, columns of a row rounded to bf16, and panels of
// float weights, [column / 2][16 outputs][2] in bf16. The including file chooses the instructions
// that multiply them.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "backends/cpu/product/fast_product.h"
#include "backends/cpu/product/matrix_vectors_avx512.h"

namespace cairn::cpu {
namespace {

// What is multiplied at a time: some columns of some whole groups of outputs.
struct FastWindow {
  int32_t first_output, end_output;
  int32_t first_col, col_count, all_cols;

  bool is_first() const { return first_col == 0; }
  bool is_last() const { return first_col + col_count == all_cols; }
};

// visit(window) for all outputs, at most kGroups groups of them at a time, and for each time all
// columns, ascending.
template <int kGroups, class Visit>
[[gnu::always_inline]] inline void for_windows(const Product& product, const Visit& visit) {
  const int32_t cols = product.weight->cols;
  const int32_t outputs = (product.output_count + kGroupRows - 1) / kGroupRows * kGroupRows;
  constexpr int32_t kOutputs = kGroups * kGroupRows;
  for (int32_t output = 0; output < outputs; output += kOutputs) {
    const int32_t end = outputs - output < kOutputs ? outputs : output + kOutputs;
    for (int32_t col = 0; col < cols; col += kFastColumns) {
      const int32_t count = cols - col < kFastColumns ? cols - col : kFastColumns;
      visit(FastWindow{output, end, col, count, cols});
    }
  }
}

// low[i] becomes number 2i, high[i] number 2i + 1.
[[gnu::always_inline]] inline __m512i interleave(__m512i low_high) {
  alignas(64) static constexpr uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), low_high);
}

[[gnu::always_inline]] inline __m512i round_two(__m512 low, __m512 high) {
  return __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high, low));
}

// The next 32 columns of a row in bf16, or the `left` that it has, and zeros.
[[gnu::always_inline]] inline __m512i round_columns(const float* x, int32_t left) {
  if (left >= 32) return round_two(_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16));
  const uint32_t is_there = (1u << left) - 1;
  return round_two(_mm512_maskz_loadu_ps(__mmask16(is_there), x),
                   _mm512_maskz_loadu_ps(__mmask16(is_there >> 16), x + 16));
}

// Two columns of a group of float weights, from `at` on.
template <Plane plane>
[[gnu::always_inline]] inline __m512i float_pair(const uint8_t* at) {
  using V = avx512::MatrixVectors;
  constexpr int kColumn = plane_bytes(plane);
  if constexpr (plane == Plane::bf16) return interleave(_mm512_loadu_si512(at));
  if constexpr (plane == Plane::f16) {
    return interleave(round_two(V::load_f16(at), V::load_f16(at + kColumn)));
  }
  return interleave(round_two(V::load_f32(at), V::load_f32(at + kColumn)));
}

// The next `count` columns of a group, and zeros up to a multiple of 32.
template <Plane plane>
void expand_float_panel(const uint8_t* at, int32_t count, std::byte* panel) {
  constexpr int kColumn = plane_bytes(plane);
  int32_t col = 0;
  for (; col + 2 <= count; col += 2) {
    _mm512_store_si512(panel + int64_t(col) * 32, float_pair<plane>(at + int64_t(col) * kColumn));
  }
  for (; col < (count + 31) / 32 * 32; col += 2) {
    alignas(64) uint8_t last[2 * kColumn] = {};
    if (col < count) std::memcpy(last, at + int64_t(col) * kColumn, kColumn);
    _mm512_store_si512(panel + int64_t(col) * 32, float_pair<plane>(last));
  }
}

}  // namespace
}  // namespace cairn::cpu
