// The heart of the quantized product: R rows times 16 outputs over all columns, for any vectors V
// and any form. Vectors run across outputs; each output has one f32 accumulator, units ascending:
//   acc = fma(float(isum), scale * s, acc), then acc = fma(float(xsum), offset * s, acc)
// for each unit, or for its lower and then its upper half (docs/numerics.md).
#pragma once

#include <cstdint>

#include "backends/cpu/product_rows.h"
#include "backends/cpu/unit_reader.h"

namespace cairn::cpu {
namespace {

// Where weights come from: the packed form itself.
template <class V, class F>
struct PackedSource {
  const uint8_t* scales;
  const uint8_t* planes;
  typename V::Bytes table;

  template <int kStep>
  typename V::Bytes bytes(int unit, int first_row) const {
    const uint8_t* at = planes + int64_t(unit) * plane_bytes(F::kPlane);
    return unit_bytes<V, F::kPlane, kStep>(at, first_row, table);
  }
  ScaleOffset<V> scale(int unit, int half, int first_row) const {
    return unit_scale<V, F>(scales, unit, half, first_row);
  }
  // Weights are read once and in order: what lies kAhead bytes on is fetched, a unit's share of the
  // group (scales and planes alike) at a time.
  void prefetch(int unit) const {
    constexpr int kAhead = 8192;
    constexpr int kShare =
        plane_bytes(F::kPlane) + super_bytes(F::kScales, F::kHalves, F::kOffsets) / kSuperUnits;
    const uint8_t* at = scales + int64_t(unit) * kShare + kAhead;
    for (int line = 0; line < kShare; line += 64) V::prefetch(at + line);
  }
};

// A panel: bytes ready to multiply, [unit][vector][64], and scales, [unit][part][16] in f32.
template <class V, class F>
struct PanelSource {
  const uint8_t* planes;
  const float* scales;

  template <int kStep>
  typename V::Bytes bytes(int unit, int first_row) const {
    return V::load(planes + int64_t(unit) * 512 + 64 * kStep + 4 * first_row);
  }
  ScaleOffset<V> scale(int unit, int half, int first_row) const {
    const float* at = scales + int64_t(unit) * F::kParts * kGroupRows +
                      half * (F::kOffsets ? 2 : 1) * kGroupRows + first_row;
    return {V::load(at), F::kOffsets ? V::load(at + kGroupRows) : V::zero()};
  }
  void prefetch(int) const {}
};

// R rows times N vectors of outputs, from output `first_row` of the group on.
template <class V, class F, class Source, int R, int N>
struct Tile {
  static constexpr int kSteps = F::kHalves ? 4 : 8;  // Vectors of one integer sum.
  using Dot = typename V::template Dot<F::kPlane, kSteps>;

  const Source& source;
  const RowsView& x;
  const int first_row;
  typename V::Floats acc[N][R];

  Tile(const Source& source_, const RowsView& x_, int first_row_)
      : source(source_), x(x_), first_row(first_row_) {}

  template <int kStep>
  void add_vector(int unit, Dot (&dots)[N][R]) {
    const int8_t* q = x.q + int64_t(unit) * R * 32 + 4 * kStep;
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) {
      const typename V::template Weights<F::kPlane> weights(
          source.template bytes<kStep>(unit, first_row + n * V::kLanes));
#pragma GCC unroll 16
      for (int row = 0; row < R; ++row) {
        dots[n][row].template add<kStep % kSteps>(weights, q + row * 32);
      }
    }
  }

  template <int kHalf>
  void add_half(int unit) {
    Dot dots[N][R];
    const int64_t sums = (int64_t(unit) * F::kHalfCount + kHalf) * R;
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
      for (int row = 0; row < R; ++row) {
        dots[n][row].start(has_start<V, F::kPlane>() ? x.starts[sums + row] : 0);
      }
    }
    constexpr int kFirst = kHalf * 4;
    add_vector<kFirst + 0>(unit, dots);
    add_vector<kFirst + 1>(unit, dots);
    add_vector<kFirst + 2>(unit, dots);
    add_vector<kFirst + 3>(unit, dots);
    if constexpr (!F::kHalves) {
      add_vector<4>(unit, dots);
      add_vector<5>(unit, dots);
      add_vector<6>(unit, dots);
      add_vector<7>(unit, dots);
    }
    const float* scales = x.scales + int64_t(unit) * R;
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) {
      const ScaleOffset<V> w = source.scale(unit, kHalf, first_row + n * V::kLanes);
#pragma GCC unroll 16
      for (int row = 0; row < R; ++row) {
        const typename V::Floats s = V::broadcast(scales[row]);
        const typename V::Floats isum = V::to_floats(dots[n][row].total());
        acc[n][row] = V::fma(isum, V::mul(w.scale, s), acc[n][row]);
        if constexpr (F::kOffsets) {
          const typename V::Floats xsum = V::broadcast(x.sums[sums + row]);
          acc[n][row] = V::fma(xsum, V::mul(w.offset, s), acc[n][row]);
        }
      }
    }
  }

  void run(int unit_count) {
    for (int n = 0; n < N; ++n) {
      for (int row = 0; row < R; ++row) acc[n][row] = V::zero();
    }
    for (int unit = 0; unit < unit_count; ++unit) {
      source.prefetch(unit);
      add_half<0>(unit);
      if constexpr (F::kHalves) add_half<1>(unit);
    }
  }
};

// Outputs [first_output, + kLanes) of a row; the last group of a matrix may end within.
template <class V>
void store_outputs(const Product& product, int32_t row, int32_t first_output,
                   typename V::Floats values) {
  if (row >= product.row_count || first_output >= product.output_count) return;
  float* out = product.rows[row].out + first_output;
  if (first_output + V::kLanes <= product.output_count) {
    if (product.bias != nullptr) values = V::add(values, V::load(product.bias + first_output));
    V::store(out, values);
    return;
  }
  float lanes[V::kLanes];
  V::store(lanes, values);
  for (int lane = 0; lane < product.output_count - first_output; ++lane) {
    const float bias = product.bias != nullptr ? product.bias[first_output + lane] : 0;
    out[lane] = product.bias != nullptr ? lanes[lane] + bias : lanes[lane];
  }
}

// R rows from `row` on times one group of outputs.
template <class V, class F, int R, int N, class Source>
void multiply_group(const Product& product, const Source& source, const RowsView& x, int32_t row,
                    int32_t first_output) {
  for (int first = 0; first < kGroupRows; first += N * V::kLanes) {
    Tile<V, F, Source, R, N> tile(source, x, first);
    tile.run(unit_count(*product.weight));
    for (int n = 0; n < N; ++n) {
      for (int r = 0; r < R; ++r) {
        store_outputs<V>(product, row + r, first_output + first + n * V::kLanes, tile.acc[n][r]);
      }
    }
  }
}

}  // namespace
}  // namespace cairn::cpu
