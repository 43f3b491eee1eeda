// fast-1's matrix kernels for AVX-512 with BF16: float weights, two products in an instruction. The
// integer products of exact-1 are twice as fast as these, so quantized weights have none here.
#include "backends/cpu/product/fast_product.h"
#include "backends/cpu/product/product_bf16.h"
#include "backends/cpu/product/product_tile.h"

namespace cairn::avx512bf16 {
namespace {

using Window = cpu::FastWindow;
using cpu::kChunkRows;
using cpu::kFastColumns;
using cpu::kGroupRows;
using cpu::kPanels;
using cpu::Plane;
using cpu::Product;
using V = avx512::MatrixVectors;

constexpr int kPassRows = 6;    // With four groups: 24 sums of 32 registers,
constexpr int kPassGroups = 4;  // and ten loads for 24 products.
constexpr int kPassOutputs = kPassGroups * kGroupRows;
constexpr int64_t kPanelBytes = int64_t(kFastColumns) * kGroupRows * 2;

// Rows, sums between two windows, and panels. Passes of kPassRows may read and write rows past the
// last one.
struct Scratch {
  static constexpr int kRows = kChunkRows + cpu::kTileRows;
  static constexpr int64_t kRowsBytes = int64_t(kRows) * kFastColumns * 2;
  static constexpr int64_t kSumsBytes = cpu::totals_bytes(kRows, kPanels);
  static constexpr size_t kBytes = size_t(kRowsBytes + kSumsBytes + kPanels * kPanelBytes);

  uint16_t* rows;     // [row][kFastColumns]
  float* totals;      // [pass of kPassOutputs][row][kPassOutputs]
  std::byte* panels;  // [group][column / 2][16 outputs][2]

  explicit Scratch(const Product& product)
      : rows(reinterpret_cast<uint16_t*>(product.scratch)),
        totals(reinterpret_cast<float*>(product.scratch + kRowsBytes)),
        panels(product.scratch + kRowsBytes + kSumsBytes) {}
  std::byte* panel_of(const Window& window, int32_t output) const {
    return panels + (output - window.first_output) / kGroupRows * kPanelBytes;
  }
};

// The window's columns of all rows, in bf16.
void round_rows(const Product& product, const Window& window, uint16_t* rows) {
  for (int32_t row = 0; row < product.row_count; ++row) {
    const float* x = product.rows[row].x + window.first_col;
    uint16_t* out = rows + int64_t(row) * kFastColumns;
    for (int32_t col = 0; col < window.col_count; col += 32) {
      _mm512_store_si512(out + col, cpu::round_columns(x + col, window.col_count - col));
    }
  }
}

// R rows times N groups over a window.
template <int R, int N>
[[gnu::always_inline]] inline void add_window(const uint16_t* rows, const std::byte* panels,
                                              int32_t pair_count, V::Floats (&sums)[R][N]) {
  for (int32_t pair = 0; pair < pair_count; ++pair) {
    __m512bh weights[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const std::byte* at = panels + n * kPanelBytes + int64_t(pair) * 64;
      weights[n] = __builtin_bit_cast(__m512bh, _mm512_load_si512(at));
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      int32_t two;
      std::memcpy(&two, rows + r * kFastColumns + 2 * pair, 4);
      const auto x = __builtin_bit_cast(__m512bh, _mm512_set1_epi32(two));
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sums[r][n] = _mm512_dpbf16_ps(sums[r][n], weights[n], x);
    }
  }
}

// Where the sums of a row and of the window's groups from `output` on wait for the next window.
float* totals_at(const Scratch& scratch, const Window& window, int32_t row,
                 int32_t output) {
  const int32_t at = output - window.first_output;
  const int64_t pass = at / kPassOutputs;
  return scratch.totals + (pass * Scratch::kRows + row) * kPassOutputs +
         at % kPassOutputs;
}

template <int R, int N>
void multiply_pass(const Product& product, const Scratch& scratch, const Window& window,
                   int32_t row, int32_t output) {
  V::Floats sums[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const float* total = totals_at(scratch, window, row + r, output) + n * kGroupRows;
      sums[r][n] = window.is_first() ? V::zero() : V::load(total);
    }
  }
  add_window<R, N>(scratch.rows + int64_t(row) * kFastColumns,
                   scratch.panel_of(window, output), (window.col_count + 1) / 2, sums);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      if (window.is_last()) {
        cpu::store_outputs<V>(product, row + r, output + n * kGroupRows, sums[r][n]);
      } else {
        V::store(totals_at(scratch, window, row + r, output) + n * kGroupRows, sums[r][n]);
      }
    }
  }
}

// All rows times N groups, whose panels stay in the first level cache.
template <int N>
void multiply_groups(const Product& product, const Scratch& scratch, const Window& window,
                     int32_t output) {
  int32_t row = 0;
  for (; product.row_count - row > 4; row += kPassRows) {
    multiply_pass<kPassRows, N>(product, scratch, window, row, output);
  }
  if (product.row_count - row > 2) {
    multiply_pass<4, N>(product, scratch, window, row, output);
  } else if (product.row_count > row) {
    multiply_pass<2, N>(product, scratch, window, row, output);
  }
}

void multiply_window(const Product& product, const Scratch& scratch, const Window& window) {
  int32_t output = window.first_output;
  for (; output + kPassOutputs <= window.end_output; output += kPassOutputs) {
    multiply_groups<kPassGroups>(product, scratch, window, output);
  }
  for (; output < window.end_output; output += kGroupRows) {
    multiply_groups<1>(product, scratch, window, output);
  }
}

// The window's columns of its groups.
template <Plane plane>
void expand_panels(const Product& product, const Window& window, const Scratch& scratch) {
  for (int32_t output = window.first_output; output < window.end_output; output += kGroupRows) {
    const uint8_t* group = product.groups + output / kGroupRows * product.weight->group_bytes;
    const uint8_t* at = group + int64_t(window.first_col) * cpu::plane_bytes(plane);
    cpu::expand_float_panel<plane>(at, window.col_count, scratch.panel_of(window, output));
  }
}

template <Plane plane>
void multiply_pairs(const Product& product) {
  const Scratch scratch(product);
  cpu::for_windows<kPanels>(product, [&](const Window& window) {
    expand_panels<plane>(product, window, scratch);
    round_rows(product, window, scratch.rows);
    multiply_window(product, scratch, window);
  });
}

// REQUIRES: weights of floats.
void multiply(const Product& product) {
  const Plane plane = product.weight->form.plane;
  if (plane == Plane::f16) return multiply_pairs<Plane::f16>(product);
  if (plane == Plane::bf16) return multiply_pairs<Plane::bf16>(product);
  multiply_pairs<Plane::f32>(product);
}

}  // namespace

constinit const cpu::MatrixKernels matrix_kernels{
    .multiply = multiply, .float_groups = kPanels, .scratch_bytes = Scratch::kBytes};

}  // namespace cairn::avx512bf16
