// fast-1's matrix kernels for AMX with BF16: rows by tiles, of 16 rows and 16 outputs each. No
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
using Window = cpu::FastWindow;
using cpu::kGroupRows;
using cpu::kTileGroups;
using cpu::kTileRows;
using cpu::Plane;
using cpu::Product;
using V = amx::TileVectors;

constexpr int kTileColumns = 32;
constexpr int kTileBytes = kTileRows * kTileColumns * 2;
static_assert(kTileRows == 16);

// Of a window, two groups' panels stay in the first level cache while they pass over all rows;
// these and the sums stay in the second.
constexpr int kColumns = cpu::kFastColumns;
constexpr int kBlocks = cpu::kTileChunkRows / kTileRows;
constexpr int64_t kBlockBytes = int64_t(kColumns) * kTileRows * 2;  // 16 rows of a window.
constexpr int64_t kPanelBytes = int64_t(kColumns) * kGroupRows * 2;

int32_t tile_count(const Window& window) {
  return (window.col_count + kTileColumns - 1) / kTileColumns;
}

// Rows as tiles take them, [row / 16][column / 32][16 rows][32 columns] in bf16; sums,
// [group][row / 16][16 rows][16 outputs]; the panels of two groups, [column / 2][16 outputs][2].
struct Scratch {
  std::byte* rows;
  float* totals;
  std::byte* panels;

  static constexpr int64_t kRowsBytes = kBlocks * kBlockBytes;
  static constexpr int64_t kSumsBytes = cpu::totals_bytes(kBlocks * kTileRows, kTileGroups);
  static constexpr size_t kBytes = size_t(kRowsBytes + kSumsBytes + 2 * kPanelBytes);

  explicit Scratch(const Product& product)
      : rows(product.scratch),
        totals(reinterpret_cast<float*>(product.scratch + kRowsBytes)),
        panels(product.scratch + kRowsBytes + kSumsBytes) {}
  float* sums(int32_t group, int32_t block) const {
    return totals + (int64_t(group) * kBlocks + block) * kTileRows * kGroupRows;
  }
};

// The window's columns of all rows. Rows past the last one are whatever lies there: their sums are
// not looked at.
template <class Panels>
void place_rows(const Product& product, const Window& window, std::byte* rows) {
  for (int32_t row = 0; row < product.row_count; ++row) {
    std::byte* out = rows + row / kTileRows * kBlockBytes + row % kTileRows * 64;
    for (int32_t col = 0; col < window.col_count; col += kTileColumns, out += kTileBytes) {
      const int32_t left = window.col_count - col;
      const __m512i columns = Panels::columns(product.rows[row], window.first_col + col, left);
      _mm512_store_si512(out, columns);
    }
  }
}

// 16 * R rows times 16 * N outputs over a window. A load stands before the product that needs it,
// so that the unit always has one to do.
template <int R, int N>
void multiply_pass(const Tiles& tiles, const Scratch& scratch, const Window& window, int32_t block,
                   int32_t group) {
  constexpr int kA = Tiles::kActivations, kW = Tiles::kWeights;
  const std::byte* x = scratch.rows + block * kBlockBytes;
  const std::byte* panel = scratch.panels;
  float* sums[2][2];
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) sums[r][n] = scratch.sums(group + n, block + r);
  }
  if (window.is_first()) {
    tiles.zero<0>();
    if constexpr (N == 2) tiles.zero<1>();
    if constexpr (R == 2) tiles.zero<2>();
    if constexpr (R == 2 && N == 2) tiles.zero<3>();
  } else {
    tiles.load<0>(sums[0][0], 64);
    if constexpr (N == 2) tiles.load<1>(sums[0][1], 64);
    if constexpr (R == 2) tiles.load<2>(sums[1][0], 64);
    if constexpr (R == 2 && N == 2) tiles.load<3>(sums[1][1], 64);
  }
  for (int32_t i = tile_count(window); i > 0; --i) {
    tiles.load<kW>(panel, 64);
    tiles.load_once<kA>(x, 64);
    tiles.dot_pairs<0, kA, kW>();
    if constexpr (N == 2) {
      tiles.load<kW + 1>(panel + kPanelBytes, 64);
      tiles.dot_pairs<1, kA, kW + 1>();
    }
    if constexpr (R == 2) {
      tiles.load_once<kA + 1>(x + kBlockBytes, 64);
      tiles.dot_pairs<2, kA + 1, kW>();
      if constexpr (N == 2) tiles.dot_pairs<3, kA + 1, kW + 1>();
    }
    x += kTileBytes;
    panel += kTileBytes;
  }
  tiles.store<0>(sums[0][0]);
  if constexpr (N == 2) tiles.store<1>(sums[0][1]);
  if constexpr (R == 2) tiles.store<2>(sums[1][0]);
  if constexpr (R == 2 && N == 2) tiles.store<3>(sums[1][1]);
}

// All rows times the N groups that are panels, of which `group` is the window's first. Between the
// passes, `fetch(part, parts)` has memory send what is expanded next.
template <int N, class Fetch>
void multiply_groups(const Product& product, const Tiles& tiles, const Scratch& scratch,
                     const Window& window, int32_t group, const Fetch& fetch) {
  const int32_t blocks = (product.row_count + kTileRows - 1) / kTileRows;
  for (int32_t block = 0; block < blocks; block += 2) {
    fetch(block, blocks);
    if (block + 1 < blocks) {
      multiply_pass<2, N>(tiles, scratch, window, block, group);
    } else {
      multiply_pass<1, N>(tiles, scratch, window, block, group);
    }
  }
}

// Row by row: those of outputs lie far apart.
void store_sums(const Product& product, const Scratch& scratch, const Window& window) {
  for (int32_t row = 0; row < product.row_count; ++row) {
    for (int32_t output = window.first_output; output < window.end_output; output += kGroupRows) {
      const int32_t group = (output - window.first_output) / kGroupRows;
      const float* sums = scratch.sums(group, row / kTileRows) + row % kTileRows * kGroupRows;
      cpu::store_outputs<V>(product, row, output, V::load(sums));
    }
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

// Makes panels of quantized weights.
template <class F>
struct QuantizedPanels {
  const Product& product;
  const __m512i bias = _mm512_set1_epi8(char(product.weight->form.bias));

  // 32 columns of a row, of which there are always so many.
  static __m512i columns(const cpu::ProductRow& row, int32_t col, int32_t) {
    return _mm512_loadu_si512(row.rounded + col);
  }
  // The window's columns of the group of these 16 outputs.
  void expand(const Window& window, int32_t output, std::byte* panel) const {
    const cpu::PackedSource<V, F> source = cpu::packed_source<V, F>(product, output);
    const int32_t first = window.first_col / 32, count = window.col_count / 32;
    for (int32_t unit = first; unit < first + count; ++unit, panel += kTileBytes) {
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
  // Has memory send columns [first, end) of that group.
  void fetch(int32_t output, int32_t first, int32_t end) const {
    const cpu::PackedSource<V, F> source = cpu::packed_source<V, F>(product, output);
    for (int32_t unit = first / 32; unit < end / 32; ++unit) source.fetch_unit(unit);
  }
};

// And of float weights.
template <Plane plane>
struct FloatPanels {
  const Product& product;

  // The next 32 columns of a row, or the `left` that it has, and zeros.
  static __m512i columns(const cpu::ProductRow& row, int32_t col, int32_t left) {
    return cpu::round_columns(row.x + col, left);
  }
  const uint8_t* column(int32_t output, int32_t col) const {
    return product.groups + output / kGroupRows * product.weight->group_bytes +
           int64_t(col) * cpu::plane_bytes(plane);
  }
  void expand(const Window& window, int32_t output, std::byte* panel) const {
    cpu::expand_float_panel<plane>(column(output, window.first_col), window.col_count, panel);
  }
  void fetch(int32_t output, int32_t first, int32_t end) const {
    const uint8_t* last = column(output, end);
    for (const uint8_t* line = column(output, first); line < last; line += 64) V::prefetch(line);
  }
};

template <class Panels>
void multiply_window(const Product& product, const Tiles& tiles, const Scratch& scratch,
                     const Window& window, const Panels& panels) {
  constexpr int32_t kTwo = 2 * kGroupRows;
  for (int32_t output = window.first_output; output < window.end_output; output += kTwo) {
    const bool are_two = window.end_output - output > kGroupRows;
    panels.expand(window, output, scratch.panels);
    if (are_two) panels.expand(window, output + kGroupRows, scratch.panels + kPanelBytes);
    // A share of the next two groups' columns.
    const auto fetch = [&](int32_t part, int32_t parts) {
      const int32_t share = (tile_count(window) * 2 + parts - 1) / parts * kTileColumns;
      const int32_t first = window.first_col + part / 2 * share;
      const int32_t last = window.first_col + window.col_count;
      const int32_t end = last - first < share ? last : first + share;
      for (int32_t next = output + kTwo; next < output + 2 * kTwo; next += kGroupRows) {
        if (next < window.end_output) panels.fetch(next, first, end);
      }
    };
    const int32_t group = (output - window.first_output) / kGroupRows;
    if (are_two) {
      multiply_groups<2>(product, tiles, scratch, window, group, fetch);
    } else {
      multiply_groups<1>(product, tiles, scratch, window, group, fetch);
    }
  }
}

template <class Panels>
void multiply_by_tiles(const Product& product) {
  const Tiles tiles(64);
  const Scratch scratch(product);
  const Panels panels{product};
  cpu::for_windows<kTileGroups>(product, [&](const Window& window) {
    place_rows<Panels>(product, window, scratch.rows);
    multiply_window(product, tiles, scratch, window, panels);
    if (window.is_last()) store_sums(product, scratch, window);
  });
}

void multiply(const Product& product) {
  const cpu::PackedForm& form = product.weight->form;
  if (form.plane == Plane::f16) return multiply_by_tiles<FloatPanels<Plane::f16>>(product);
  if (form.plane == Plane::bf16) return multiply_by_tiles<FloatPanels<Plane::bf16>>(product);
  if (form.plane == Plane::f32) return multiply_by_tiles<FloatPanels<Plane::f32>>(product);
  cpu::visit_form(form, [&product]<class F>(F) { multiply_by_tiles<QuantizedPanels<F>>(product); });
}

void round(const float* x, int64_t count, uint16_t* rounded) {
  for (int64_t i = 0; i < count; i += 32) {
    _mm512_storeu_si512(rounded + i, cpu::round_columns(x + i, 32));
  }
}

}  // namespace

constinit const cpu::MatrixKernels matrix_kernels{.multiply = multiply,
                                                  .round = round,
                                                  .chunk_rows = cpu::kTileChunkRows,
                                                  .float_rows = cpu::kTileChunkRows,
                                                  .panel_groups = kTileGroups,
                                                  .float_groups = kTileGroups,
                                                  .scratch_bytes = Scratch::kBytes};

}  // namespace cairn::amxbf16
