// fast-1's matrix kernels for AMX with BF16: many rows by tiles, of 16 rows and 16 outputs each. No
// scale stands between two products, so every format becomes a panel of bf16 and goes this way. A
// tile adds up the first numbers of 16 pairs, their second numbers, then both to its sums.
#include "backends/cpu/product/expand_amx.h"
#include "backends/cpu/product/fast_product.h"
#include "backends/cpu/product/product_bf16.h"
#include "backends/cpu/product/product_tile.h"
#include "backends/cpu/product/tiles_amx.h"

namespace cairn::amxbf16 {
namespace {

using amx::Tiles;
using cpu::FastScratch;
using cpu::FastWindow;
using cpu::kChunkRows;
using cpu::kFastColumns;
using cpu::kFastPanelBytes;
using cpu::kGroupRows;
using cpu::kTileRows;
using cpu::Plane;
using cpu::Product;
using V = amx::TileVectors;

constexpr int kTileColumns = 32;
constexpr int64_t kRowBytes = kFastColumns * 2;
static_assert(kTileRows == 16 && kFastColumns % kTileColumns == 0);

// Sums of a group and all rows: [group][row][16 outputs].
float* totals_at(const FastScratch& scratch, const FastWindow& window, int32_t row,
                 int32_t output) {
  const int64_t group = (output - window.first_output) / kGroupRows;
  return scratch.totals + (group * (kChunkRows + kTileRows) + row) * kGroupRows;
}

// 16 * R rows times 16 * N outputs over a window. A load stands before the product that needs it,
// so that the unit always has one to do. Rows past the last one are whatever lies there: their sums
// are not looked at.
template <int R, int N>
void multiply_pass(const Tiles& tiles, const FastScratch& scratch, const FastWindow& window,
                   int32_t row, int32_t output) {
  constexpr int kA = Tiles::kActivations, kW = Tiles::kWeights;
  const auto* x = reinterpret_cast<const std::byte*>(scratch.rows + int64_t(row) * kFastColumns);
  const std::byte* panel = scratch.panels + window.panel_offset(output);
  float* totals[2][2];
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) {
      totals[r][n] = totals_at(scratch, window, row + r * kTileRows, output + n * kGroupRows);
    }
  }
  if (window.is_first()) {
    tiles.zero<0>();
    if constexpr (N == 2) tiles.zero<1>();
    if constexpr (R == 2) tiles.zero<2>();
    if constexpr (R == 2 && N == 2) tiles.zero<3>();
  } else {
    tiles.load<0>(totals[0][0], 64);
    if constexpr (N == 2) tiles.load<1>(totals[0][1], 64);
    if constexpr (R == 2) tiles.load<2>(totals[1][0], 64);
    if constexpr (R == 2 && N == 2) tiles.load<3>(totals[1][1], 64);
  }
  for (int32_t col = 0; col < window.padded_count(); col += kTileColumns) {
    tiles.load<kW>(panel + int64_t(col) * 32, 64);
    tiles.load<kA>(x + int64_t(col) * 2, kRowBytes);
    tiles.dot_pairs<0, kA, kW>();
    if constexpr (N == 2) {
      tiles.load<kW + 1>(panel + kFastPanelBytes + int64_t(col) * 32, 64);
      tiles.dot_pairs<1, kA, kW + 1>();
    }
    if constexpr (R == 2) {
      tiles.load<kA + 1>(x + kTileRows * kRowBytes + int64_t(col) * 2, kRowBytes);
      tiles.dot_pairs<2, kA + 1, kW>();
      if constexpr (N == 2) tiles.dot_pairs<3, kA + 1, kW + 1>();
    }
  }
  tiles.store<0>(totals[0][0]);
  if constexpr (N == 2) tiles.store<1>(totals[0][1]);
  if constexpr (R == 2) tiles.store<2>(totals[1][0]);
  if constexpr (R == 2 && N == 2) tiles.store<3>(totals[1][1]);
}

// All rows times N groups.
template <int N>
void multiply_groups(const Product& product, const Tiles& tiles, const FastScratch& scratch,
                     const FastWindow& window, int32_t output) {
  int32_t row = 0;
  for (; product.row_count - row > kTileRows; row += 2 * kTileRows) {
    multiply_pass<2, N>(tiles, scratch, window, row, output);
  }
  if (product.row_count > row) multiply_pass<1, N>(tiles, scratch, window, row, output);
  if (!window.is_last()) return;
  for (row = 0; row < product.row_count; ++row) {
    for (int n = 0; n < N; ++n) {
      const int32_t first = output + n * kGroupRows;
      cpu::store_outputs<V>(product, row, first, V::load(totals_at(scratch, window, row, first)));
    }
  }
}

void multiply_window(const Product& product, const Tiles& tiles, const FastScratch& scratch,
                     const FastWindow& window) {
  int32_t output = window.first_output;
  for (; output + 2 * kGroupRows <= window.end_output; output += 2 * kGroupRows) {
    multiply_groups<2>(product, tiles, scratch, window, output);
  }
  if (output < window.end_output) {
    multiply_groups<1>(product, tiles, scratch, window, output);
  }
}

// Four columns of a unit, [16 outputs][4] as signed bytes, become two pairs of a panel.
template <bool kOffsets>
[[gnu::always_inline]] inline void expand_vector(__m512i bytes, const cpu::ScaleOffset<V>& w,
                                                 std::byte* panel) {
  const auto weight = [&w](__m512i ints) {
    const __m512 q = _mm512_cvtepi32_ps(_mm512_srai_epi32(ints, 24));
    return kOffsets ? V::fma(q, w.scale, w.offset) : V::mul(q, w.scale);
  };
  const __m512 first = weight(_mm512_slli_epi32(bytes, 24));
  const __m512 second = weight(_mm512_slli_epi32(bytes, 16));
  const __m512 third = weight(_mm512_slli_epi32(bytes, 8));
  const __m512 fourth = weight(bytes);
  _mm512_store_si512(panel, cpu::interleave(cpu::round_two(first, second)));
  _mm512_store_si512(panel + 64, cpu::interleave(cpu::round_two(third, fourth)));
}

template <class F, int kStep>
[[gnu::always_inline]] inline void expand_step(const cpu::PackedSource<V, F>& source, int unit,
                                               __m512i bias, std::byte* panel) {
  const __m512i bytes = amx::as_signed<F>(source.template bytes<kStep>(unit, 0), bias);
  const int half = F::kHalves && kStep >= 4 ? 1 : 0;
  expand_vector<F::kOffsets>(bytes, source.scale(unit, half, 0), panel + kStep * 128);
}

template <class F>
void expand_quantized_panels(const Product& product, const FastWindow& window, std::byte* panels) {
  const __m512i bias = _mm512_set1_epi8(char(product.weight->form.bias));
  const int32_t first_unit = window.first_col / 32, unit_count = window.col_count / 32;
  for (int32_t output = window.first_output; output < window.end_output; output += kGroupRows) {
    const cpu::PackedSource<V, F> source = cpu::packed_source<V, F>(product, output);
    std::byte* panel = panels + window.panel_offset(output);
    for (int32_t unit = first_unit; unit < first_unit + unit_count; ++unit, panel += 1024) {
      source.prefetch_next_group(unit);
      expand_step<F, 0>(source, unit, bias, panel);
      expand_step<F, 1>(source, unit, bias, panel);
      expand_step<F, 2>(source, unit, bias, panel);
      expand_step<F, 3>(source, unit, bias, panel);
      expand_step<F, 4>(source, unit, bias, panel);
      expand_step<F, 5>(source, unit, bias, panel);
      expand_step<F, 6>(source, unit, bias, panel);
      expand_step<F, 7>(source, unit, bias, panel);
    }
  }
}

template <class Expand>
void multiply_by_tiles(const Product& product, const Expand& expand) {
  const Tiles tiles(64);
  const FastScratch scratch(product);
  cpu::for_windows(product, [&](const FastWindow& window) {
    expand(window, scratch.panels);
    cpu::round_rows(product, window, scratch.rows);
    multiply_window(product, tiles, scratch, window);
  });
}

template <Plane plane>
void multiply_floats(const Product& product) {
  multiply_by_tiles(product, [&product](const FastWindow& window, std::byte* panels) {
    cpu::expand_float_panels<plane>(product, window, panels);
  });
}

void multiply(const Product& product) {
  const cpu::PackedForm& form = product.weight->form;
  if (form.plane == Plane::f16) return multiply_floats<Plane::f16>(product);
  if (form.plane == Plane::bf16) return multiply_floats<Plane::bf16>(product);
  if (form.plane == Plane::f32) return multiply_floats<Plane::f32>(product);
  cpu::visit_form(form, [&product]<class F>(F) {
    multiply_by_tiles(product, [&product](const FastWindow& window, std::byte* panels) {
      expand_quantized_panels<F>(product, window, panels);
    });
  });
}

void quantize(const float* x, int64_t count, int8_t* q, float* scales, int32_t* sums) {
  avx512::matrix_kernels.quantize(x, count, q, scales, sums);
}

}  // namespace

constinit const cpu::MatrixKernels matrix_kernels{.multiply = multiply,
                                                  .quantize = quantize,
                                                  .float_groups = cpu::kPanels,
                                                  .scratch_bytes = cpu::kFastScratchBytes};

}  // namespace cairn::amxbf16
