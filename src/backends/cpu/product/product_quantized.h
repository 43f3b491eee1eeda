// Products of quantized weights. Few rows multiply the packed form itself, each byte of it read
// once from memory. More rows multiply panels: some columns of some groups, expanded once to bytes
// and f32 scales that stay in the first and second level caches while all rows pass over them.
#pragma once

#include <cstdint>

#include "backends/cpu/lanes/repeat.h"
#include "backends/cpu/product/product_tile.h"

namespace cairn::cpu {
namespace {

template <class V, class F>
PackedSource<V, F> packed_source(const Product& product, int32_t first_output) {
  const PackedMatrix& weight = *product.weight;
  return {.group = product.groups + first_output / kGroupRows * weight.group_bytes,
          .group_bytes = weight.group_bytes,
          .scales_bytes = weight.scales_bytes,
          .unit_count = unit_count(weight),
          .table = V::load_table(weight.form.table)};
}

// R rows from `row` on times the outputs [output, + N vectors), over all columns.
template <class V, class F, int R, int N>
[[gnu::noinline]] void multiply_packed_tile(const Product& product, const RowsView& x, int32_t row,
                                            int32_t output) {
  const PackedSource<V, F> source = packed_source<V, F>(product, output);
  Tile<V, F, PackedSource<V, F>, R, N> tile(source, x, output % kGroupRows);
  tile.start();
  tile.run(unit_count(*product.weight));
  store_tile<V, R, N>(product, row, output, tile.acc);
}

// A block of rows, ready to multiply.
struct RowBlock {
  int32_t first, count;
  RowsView x;
};

// All outputs of a group. A row alone has a chain of sums for each of the group's vectors; few rows
// multiply two vectors at a time, where a group has two.
template <class V, class F, int R>
void multiply_packed_group(const Product& product, const RowsView& x, int32_t row, int32_t output) {
  constexpr int kAll = kGroupRows / V::kLanes;
  constexpr int kVectors = R == 1 || kAll == 1 ? kAll : R <= 4 ? 2 : 1;
  for (int lane = 0; lane < kGroupRows; lane += kVectors * V::kLanes) {
    multiply_packed_tile<V, F, R, kVectors>(product, x, row, output + lane);
  }
}

// A row alone times all but the last groups, V::kRowGroups of them side by side: the processor's
// own prefetching, which stops at the end of each page, goes on in the others meanwhile. Gives the
// first output that is left.
template <class V, class F>
int32_t multiply_packed_groups(const Product& product, const RowsView& x) {
  constexpr int kOutputs = V::kRowGroups * kGroupRows;
  int32_t output = 0;
  for (; output + kOutputs <= product.output_count; output += kOutputs) {
    multiply_packed_tile<V, F, 1, kOutputs / V::kLanes>(product, x, 0, output);
  }
  return output;
}

template <class V, class F>
void multiply_packed_block(const Product& product, const RowBlock& block, int32_t output) {
  with_index<1, V::kBlockRows>(block.count, [&]<int R>(Index<R>) {
    multiply_packed_group<V, F, R>(product, block.x, block.first, output);
  });
}

template <class V, class F, int R>
RowBlock make_block(const Product& product, int32_t row, std::byte*& scratch) {
  const int64_t row_units = padded_units(*product.weight) * R;
  const RowsBuffer buffer = rows_buffer(scratch, row_units);
  scratch += side_by_side_bytes(row_units);
  return {row, R,
          put_side_by_side<F::kHalves, F::kOffsets, R>(product, row, 0, unit_count(*product.weight),
                                                       start_bias(product.weight->form), buffer)};
}

template <class V, class F>
RowBlock make_block(const Product& product, int32_t row, std::byte*& scratch) {
  const int32_t row_count = block_rows(product.row_count - row, V::kBlockRows);
  return with_index<1, V::kBlockRows>(row_count, [&]<int R>(Index<R>) {
    return make_block<V, F, R>(product, row, scratch);
  });
}

template <class V, class F>
void multiply_packed(const Product& product) {
  static_assert(V::kDirectRows <= kDirectRowsMax);
  RowBlock blocks[V::kDirectRows];
  int block_count = 0;
  std::byte* scratch = product.scratch;
  for (int32_t row = 0; row < product.row_count; row += blocks[block_count++].count) {
    blocks[block_count] = make_block<V, F>(product, row, scratch);
  }
  int32_t output = 0;
  if (product.row_count == 1) output = multiply_packed_groups<V, F>(product, blocks[0].x);
  for (; output < product.output_count; output += kGroupRows) {
    for (int i = 0; i < block_count; ++i) {
      multiply_packed_block<V, F>(product, blocks[i], output);
    }
  }
}

// Expands `unit` of a group into a panel, as the panel's unit `to`; `convert` makes what is put
// there of the bytes that a source gives.
template <class V, class F, class Convert>
void expand_unit(const PackedSource<V, F>& source, int unit, int to, const Convert& convert,
                 std::byte* panel) {
  using Panel = PanelSource<V, F>;
  float* scales =
      reinterpret_cast<float*>(panel + Panel::kScalesOffset) + int64_t(to) * F::kParts * kGroupRows;
  for (int lane = 0; lane < kGroupRows; lane += V::kLanes) {
    uint8_t* at = reinterpret_cast<uint8_t*>(panel) + int64_t(to) * 512 + 4 * lane;
    V::store(at + 0 * 64, convert(source.template bytes<0>(unit, lane)));
    V::store(at + 1 * 64, convert(source.template bytes<1>(unit, lane)));
    V::store(at + 2 * 64, convert(source.template bytes<2>(unit, lane)));
    V::store(at + 3 * 64, convert(source.template bytes<3>(unit, lane)));
    V::store(at + 4 * 64, convert(source.template bytes<4>(unit, lane)));
    V::store(at + 5 * 64, convert(source.template bytes<5>(unit, lane)));
    V::store(at + 6 * 64, convert(source.template bytes<6>(unit, lane)));
    V::store(at + 7 * 64, convert(source.template bytes<7>(unit, lane)));
    for (int half = 0; half < F::kHalfCount; ++half) {
      const ScaleOffset<V> w = source.scale(unit, half, lane);
      float* part = scales + half * (F::kOffsets ? 2 : 1) * kGroupRows + lane;
      V::store(part, w.scale);
      if constexpr (F::kOffsets) V::store(part + kGroupRows, w.offset);
    }
  }
}

// A panel no longer remembers how its scales were stored: one text serves all of them.
template <class F>
using PanelForm = Form<F::kPlane, Scales::full, F::kHalves, F::kOffsets>;

// The parts of a product's scratch when it works by panels.
template <class V>
struct PanelScratch {
  static constexpr int64_t kRowsBytes = side_by_side_bytes(kPanelUnits * kTileRows);
  static constexpr int64_t kSumsBytes = totals_bytes(V::kChunkRows, V::kPanels);
  static constexpr size_t kBytesMax =
      size_t(kRowsBytes + kSumsBytes + V::kPanels * panel_bytes(true, true));

  RowsBuffer rows;
  float* totals;  // [block of rows][output][row of the block], some of them in vectors
  std::byte* panels;

  explicit PanelScratch(const Product& product) {
    rows = rows_buffer(product.scratch, kPanelUnits * kTileRows);
    totals = reinterpret_cast<float*>(product.scratch + kRowsBytes);
    panels = product.scratch + kRowsBytes + kSumsBytes;
  }
};

// What is expanded at a time: some columns of some outputs.
struct Window {
  int32_t first_output, end_output;
  int32_t first_unit, unit_count, all_units;

  bool is_first() const { return first_unit == 0; }
  bool is_last() const { return first_unit + unit_count == all_units; }
};

template <class V, class F, int R, int N>
[[gnu::noinline]] void multiply_panel_tile(const Product& product, const PanelScratch<V>& scratch,
                                           const RowsView& x, const Window& window, int32_t row,
                                           int32_t output) {
  const int32_t at = output - window.first_output;
  const PanelSource<V, F> source{scratch.panels + at / kGroupRows * PanelSource<V, F>::kBytes};
  Tile<V, F, PanelSource<V, F>, R, N> tile(source, x, output % kGroupRows);
  float* totals = scratch.totals + int64_t(row) * V::kPanels * kGroupRows + int64_t(at) * R;
  if (window.is_first()) {
    tile.start();
  } else {
    tile.load(totals);
  }
  tile.run(window.unit_count);
  if (window.is_last()) {
    store_tile<V, R, N>(product, row, output, tile.acc);
  } else {
    tile.save(totals);
  }
}

template <class V, class F, int R>
void multiply_panels(const Product& product, const PanelScratch<V>& scratch, const Window& window,
                     int32_t row) {
  const RowsView x = put_side_by_side<F::kHalves, F::kOffsets, R>(
      product, row, window.first_unit, window.unit_count, start_bias(product.weight->form),
      scratch.rows);
  constexpr int kOutputs = V::kTileVectors * V::kLanes;
  int32_t output = window.first_output;
  for (; output + kOutputs <= window.end_output; output += kOutputs) {
    multiply_panel_tile<V, F, R, V::kTileVectors>(product, scratch, x, window, row, output);
  }
  for (; output < window.end_output; output += V::kLanes) {
    multiply_panel_tile<V, F, R, 1>(product, scratch, x, window, row, output);
  }
}

// How many rows the next pass over panels takes when `rest` are left.
template <class V>
constexpr int32_t panel_rows(int32_t rest) {
  return rest <= 4 ? 4 : V::kTileRows;
}

// Whether the passes of up to kChunkRows rows take no more, those past the last row included:
// scratch has room for so many.
template <class V>
constexpr bool panel_rows_fit() {
  for (int32_t row_count = 1; row_count <= V::kChunkRows; ++row_count) {
    int32_t row = 0;
    while (row < row_count) row += panel_rows<V>(row_count - row);
    if (row > V::kChunkRows) return false;
  }
  return true;
}

template <class V, class F>
void multiply_all_rows(const Product& product, const PanelScratch<V>& scratch,
                       const Window& window) {
  static_assert(panel_rows_fit<V>());
  for (int32_t row = 0; row < product.row_count;) {
    const int32_t count = panel_rows<V>(product.row_count - row);
    if (count == V::kTileRows) {
      multiply_panels<V, F, V::kTileRows>(product, scratch, window, row);
    } else {
      multiply_panels<V, F, 4>(product, scratch, window, row);
    }
    row += count;
  }
}

template <class V, class F, class Convert>
void expand_panels(const Product& product, const PanelScratch<V>& scratch, const Window& window,
                   const Convert& convert) {
  std::byte* panel = scratch.panels;
  for (int32_t output = window.first_output; output < window.end_output; output += kGroupRows) {
    const PackedSource<V, F> source = packed_source<V, F>(product, output);
    for (int32_t unit = 0; unit < window.unit_count; ++unit) {
      source.prefetch_next_group(window.first_unit + unit);
      expand_unit<V, F>(source, window.first_unit + unit, unit, convert, panel);
    }
    panel += PanelSource<V, F>::kBytes;
  }
}

// Expands one window of the product after the other; multiply(scratch, window) passes all rows over
// its panels.
template <class V, class F, class Convert, class Multiply>
void for_each_window(const Product& product, const Convert& convert, const Multiply& multiply) {
  constexpr int32_t kOutputs = V::kPanels * kGroupRows;
  const PanelScratch<V> scratch(product);
  const int32_t units = unit_count(*product.weight);
  for (int32_t output = 0; output < product.output_count; output += kOutputs) {
    const int32_t end =
        output + kOutputs < product.output_count ? output + kOutputs : product.output_count;
    for (int32_t unit = 0; unit < units; unit += kPanelUnits) {
      const int32_t count = units - unit < kPanelUnits ? units - unit : kPanelUnits;
      const Window window{output, end, unit, count, units};
      expand_panels<V, F>(product, scratch, window, convert);
      multiply(scratch, window);
    }
  }
}

template <class V, class F>
void multiply_by_panels(const Product& product) {
  const auto as_they_are = [](typename V::Bytes bytes) { return bytes; };
  for_each_window<V, F>(product, as_they_are,
                        [&product](const PanelScratch<V>& scratch, const Window& window) {
                          multiply_all_rows<V, PanelForm<F>>(product, scratch, window);
                        });
}

template <class V>
void multiply_quantized(const Product& product) {
  visit_form(product.weight->form, [&product]<class F>(F) {
    if (product.row_count > V::kDirectRows) {
      multiply_by_panels<V, F>(product);
    } else {
      multiply_packed<V, F>(product);
    }
  });
}

}  // namespace
}  // namespace cairn::cpu
