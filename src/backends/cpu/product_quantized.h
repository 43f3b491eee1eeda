// Products of quantized weights: few rows multiply the packed form itself, each byte of it read
// once; more rows multiply panels, groups expanded once to bytes and f32 scales.
#pragma once

#include <cstdint>

#include "backends/cpu/product_tile.h"

namespace cairn::cpu {
namespace {

template <class V, class F>
PackedSource<V, F> packed_source(const PackedMatrix& weight, const uint8_t* group) {
  return {.scales = group,
          .planes = group + weight.scales_bytes,
          .table = V::load_table(weight.form.table)};
}

template <class V, class F, int R>
void multiply_packed(const Product& product) {
  constexpr int kVectors = R == 1 ? kGroupRows / V::kLanes : 1;
  const PackedMatrix& weight = *product.weight;
  const RowsView x = interleave_rows<F::kHalves, F::kOffsets, R>(
      product, 0, start_bias(weight.form), rows_buffer(product));
  for (int32_t output = 0; output < product.output_count; output += kGroupRows) {
    const uint8_t* group = product.groups + output / kGroupRows * weight.group_bytes;
    const PackedSource<V, F> source = packed_source<V, F>(weight, group);
    multiply_group<V, F, R, kVectors>(product, source, x, 0, output);
  }
}

template <class V, class F>
void expand_unit(const PackedSource<V, F>& source, int unit, uint8_t* bytes, float* scales) {
  for (int first = 0; first < kGroupRows; first += V::kLanes) {
    uint8_t* at = bytes + 4 * first;
    V::store(at + 0 * 64, source.template bytes<0>(unit, first));
    V::store(at + 1 * 64, source.template bytes<1>(unit, first));
    V::store(at + 2 * 64, source.template bytes<2>(unit, first));
    V::store(at + 3 * 64, source.template bytes<3>(unit, first));
    V::store(at + 4 * 64, source.template bytes<4>(unit, first));
    V::store(at + 5 * 64, source.template bytes<5>(unit, first));
    V::store(at + 6 * 64, source.template bytes<6>(unit, first));
    V::store(at + 7 * 64, source.template bytes<7>(unit, first));
    for (int half = 0; half < F::kHalfCount; ++half) {
      const ScaleOffset<V> w = source.scale(unit, half, first);
      float* part = scales + half * (F::kOffsets ? 2 : 1) * kGroupRows + first;
      V::store(part, w.scale);
      if constexpr (F::kOffsets) V::store(part + kGroupRows, w.offset);
    }
  }
}

// The panels' memory follows the interleaved rows' in the scratch.
template <class V, class F>
PanelSource<V, F> panel(const Product& product, int32_t index) {
  const PackedMatrix& weight = *product.weight;
  std::byte* at = product.scratch + interleaved_bytes(weight) + index * panel_bytes(weight);
  uint8_t* planes = reinterpret_cast<uint8_t*>(at);
  return {.planes = planes,
          .scales = reinterpret_cast<float*>(planes + int64_t(unit_count(weight)) * 512)};
}

template <class V, class F>
void expand_panel(const Product& product, const uint8_t* group, int32_t index) {
  const PackedMatrix& weight = *product.weight;
  const PackedSource<V, F> source = packed_source<V, F>(weight, group);
  const PanelSource<V, F> to = panel<V, F>(product, index);
  for (int32_t unit = 0; unit < unit_count(weight); ++unit) {
    source.prefetch(unit);
    expand_unit<V, F>(source, unit, const_cast<uint8_t*>(to.planes) + int64_t(unit) * 512,
                      const_cast<float*>(to.scales) + int64_t(unit) * F::kParts * kGroupRows);
  }
}

template <class V, class F, int R>
void multiply_panels(const Product& product, int32_t row, int32_t first_output,
                     int32_t panel_count) {
  const RowsView x = interleave_rows<F::kHalves, F::kOffsets, R>(
      product, row, start_bias(product.weight->form), rows_buffer(product));
  for (int32_t index = 0; index < panel_count; ++index) {
    multiply_group<V, F, R, 1>(product, panel<V, F>(product, index), x, row,
                               first_output + index * kGroupRows);
  }
}

// A panel no longer remembers how its scales were stored: one text serves all of them.
template <class F>
using PanelForm = Form<F::kPlane, Scales::full, F::kHalves, F::kOffsets>;

template <class V, class F>
void multiply_all_rows(const Product& product, int32_t first_output, int32_t panel_count) {
  int32_t row = 0;
  while (product.row_count - row >= V::kPanelRows) {
    multiply_panels<V, F, V::kPanelRows>(product, row, first_output, panel_count);
    row += V::kPanelRows;
  }
  while (row < product.row_count) {
    const int32_t rest = product.row_count - row;
    if (V::kPanelRows > 4 && rest > 4) {
      multiply_panels<V, F, (V::kPanelRows > 4 ? 8 : 4)>(product, row, first_output, panel_count);
      row += 8;
    } else {
      multiply_panels<V, F, 4>(product, row, first_output, panel_count);
      row += 4;
    }
  }
}

template <class V, class F>
void multiply_by_panels(const Product& product) {
  const PackedMatrix& weight = *product.weight;
  const int32_t group_count = (product.output_count + kGroupRows - 1) / kGroupRows;
  const int32_t at_once = panels_at_once(weight);
  for (int32_t first = 0; first < group_count; first += at_once) {
    const int32_t count = group_count - first < at_once ? group_count - first : at_once;
    for (int32_t index = 0; index < count; ++index) {
      expand_panel<V, F>(product, product.groups + (first + index) * weight.group_bytes, index);
    }
    multiply_all_rows<V, PanelForm<F>>(product, first * kGroupRows, count);
  }
}

template <class V>
void multiply_quantized(const Product& product) {
  visit_form(product.weight->form, [&product]<class F>(F) {
    if (product.row_count > kDirectRows) {
      multiply_by_panels<V, F>(product);
    } else if (product.row_count > 2) {
      multiply_packed<V, F, 4>(product);
    } else if (product.row_count == 2) {
      multiply_packed<V, F, 2>(product);
    } else {
      multiply_packed<V, F, 1>(product);
    }
  });
}

}  // namespace
}  // namespace cairn::cpu
