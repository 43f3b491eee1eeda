// The inner tile of the quantized product: R rows times 16 outputs over all columns, for any
// vectors V and any form. Vectors run across outputs; each output has one f32 accumulator, units
// ascending:
//   acc = fma(float(isum), scale * s, acc), then acc = fma(float(xsum), offset * s, acc)
// for each unit, or for its lower and then its upper half (docs/numerics.md).
#pragma once

#include <cstdint>

#include "backends/cpu/product/product_rows.h"
#include "backends/cpu/product/unit_reader.h"

namespace cairn::cpu {
namespace {

// Where weights come from: the packed form itself. Vector n of a tile may lie in a later group than
// the tile's first.
template <class V, class F>
struct PackedSource {
  const uint8_t* group;
  int64_t group_bytes, scales_bytes;
  int unit_count;
  typename V::Bytes table;

  template <int kStep>
  typename V::Bytes bytes(int unit, int lane) const {
    const uint8_t* planes = group + lane / kGroupRows * group_bytes + scales_bytes;
    const uint8_t* at = planes + int64_t(unit) * plane_bytes(F::kPlane);
    return unit_bytes<V, F::kPlane, kStep>(at, lane % kGroupRows, table);
  }
  ScaleOffset<V> scale(int unit, int half, int lane) const {
    const uint8_t* scales = group + lane / kGroupRows * group_bytes;
    return unit_scale<V, F>(scales, unit, half, lane % kGroupRows);
  }
  // Weights are read once and in order: what is read kAhead bytes later is fetched, be it in the
  // next group, or G groups later where so many are read side by side.
  template <int G>
  [[gnu::always_inline]] void prefetch(int unit, int lane) const {
    constexpr int kAhead = G == 1 ? 12288 : 2048;
    constexpr int kUnits = kAhead / plane_bytes(F::kPlane);
    const uint8_t* at = group + lane / kGroupRows * group_bytes;
    int later = unit + (kUnits < unit_count ? kUnits : unit_count);
    if (later >= unit_count) {
      later -= unit_count;
      at += G * group_bytes;
    }
    fetch_unit(at, later);
  }
  // For readers of the same units of consecutive groups.
  [[gnu::always_inline]] void prefetch_next_group(int unit) const {
    fetch_unit(group + group_bytes, unit);
  }
  [[gnu::always_inline]] void fetch_unit(int unit) const { fetch_unit(group, unit); }

 private:
  // Inlined by order: to the compiler a function that only prefetches has no effect.
  [[gnu::always_inline]] void fetch_unit(const uint8_t* at, int unit) const {
    constexpr int kScaleBytes = super_bytes(F::kScales, F::kHalves, F::kOffsets) / kSuperUnits;
    const uint8_t* scales = at + int64_t(unit) * kScaleBytes;
    if (unit % 2 == 0) {  // The scales of two units, which may be one line.
      for (int line = 0; line < 2 * kScaleBytes; line += 64) V::prefetch(scales + line);
    }
    const uint8_t* plane = at + scales_bytes + int64_t(unit) * plane_bytes(F::kPlane);
    for (int line = 0; line < plane_bytes(F::kPlane); line += 64) V::prefetch(plane + line);
  }
};

// Panels: bytes ready to multiply, [unit][vector][64], and scales, [unit][part][16] in f32.
template <class V, class F>
struct PanelSource {
  const std::byte* panel;

  static constexpr int64_t kScalesOffset = int64_t(kPanelUnits) * 512;
  static constexpr int64_t kBytes = kScalesOffset + kPanelUnits * F::kParts * kGroupRows * 4;

  template <int kStep>
  typename V::Bytes bytes(int unit, int lane) const {
    const std::byte* at = panel + lane / kGroupRows * kBytes;
    return V::load(reinterpret_cast<const uint8_t*>(at) + int64_t(unit) * 512 + 64 * kStep +
                   4 * (lane % kGroupRows));
  }
  ScaleOffset<V> scale(int unit, int half, int lane) const {
    const std::byte* scales = panel + lane / kGroupRows * kBytes + kScalesOffset;
    const float* at = reinterpret_cast<const float*>(scales) +
                      int64_t(unit) * F::kParts * kGroupRows +
                      half * (F::kOffsets ? 2 : 1) * kGroupRows + lane % kGroupRows;
    return {V::load(at), F::kOffsets ? V::load(at + kGroupRows) : V::zero()};
  }
  template <int G>
  void prefetch(int, int) const {}
};

// R rows times N vectors of outputs, from output `first_row` of the group on. All of it is inlined
// by order: a tile whose address goes to a function keeps its sums in memory, at every unit, and
// not in registers.
template <class V, class F, class Source, int R, int N>
struct Tile {
  static constexpr int kSteps = F::kHalves ? 4 : 8;  // Vectors of one integer sum.
  static constexpr int kGroups = (N * V::kLanes + kGroupRows - 1) / kGroupRows;
  using Dot = typename V::template Dot<F::kPlane, kSteps, N>;

  const Source& source;
  RowsView x;            // From the units on that are multiplied next.
  const int first_lane;  // Of the tile's first vector, counted from the source's first output.
  typename V::Floats acc[N][R];

  [[gnu::always_inline]] Tile(const Source& source_, const RowsView& x_, int first_lane_)
      : source(source_), x(x_), first_lane(first_lane_) {}

  // Here `unit` counts from the source's first unit, `i` is the same from the first unit of x.
  template <int kStep>
  [[gnu::always_inline]] void add_vector(int unit, int i, Dot (&dots)[N][R]) {
    const int8_t* q = x.q + i * 32 + 4 * kStep;
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const typename V::template Weights<F::kPlane> weights(
          source.template bytes<kStep>(unit, first_lane + n * V::kLanes));
#pragma GCC unroll 16
      for (int row = 0; row < R; ++row) {
        dots[n][row].template add<kStep % kSteps>(weights, q + row * kPanelUnits * 32);
      }
    }
  }

  template <int kHalf>
  [[gnu::always_inline]] void add_half(int unit, int i) {
    Dot dots[N][R];
    const int sums = kHalf * R * kPanelUnits + i;
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
      for (int row = 0; row < R; ++row) {
        dots[n][row].start(has_start<V, F::kPlane>() ? x.starts[sums + row * kPanelUnits] : 0);
      }
    }
    constexpr int kFirst = kHalf * 4;
    add_vector<kFirst + 0>(unit, i, dots);
    add_vector<kFirst + 1>(unit, i, dots);
    add_vector<kFirst + 2>(unit, i, dots);
    add_vector<kFirst + 3>(unit, i, dots);
    if constexpr (!F::kHalves) {
      add_vector<4>(unit, i, dots);
      add_vector<5>(unit, i, dots);
      add_vector<6>(unit, i, dots);
      add_vector<7>(unit, i, dots);
    }
    const float* scales = x.scales + i;
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const ScaleOffset<V> w = source.scale(unit, kHalf, first_lane + n * V::kLanes);
#pragma GCC unroll 16
      for (int row = 0; row < R; ++row) {
        const typename V::Floats s = V::broadcast(scales[row * kPanelUnits]);
        const typename V::Floats isum = V::to_floats(dots[n][row].total());
        acc[n][row] = V::fma(isum, V::mul(w.scale, s), acc[n][row]);
        if constexpr (F::kOffsets) {
          const typename V::Floats xsum = V::broadcast(x.sums[sums + row * kPanelUnits]);
          acc[n][row] = V::fma(xsum, V::mul(w.offset, s), acc[n][row]);
        }
      }
    }
  }

  [[gnu::always_inline]] void start() {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
      for (int row = 0; row < R; ++row) acc[n][row] = V::zero();
    }
  }
  // Goes on from sums that save() kept.
  [[gnu::always_inline]] void load(const float* totals) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
      for (int row = 0; row < R; ++row) acc[n][row] = V::load(totals + (n * R + row) * V::kLanes);
    }
  }
  [[gnu::always_inline]] void save(float* totals) const {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
      for (int row = 0; row < R; ++row) V::store(totals + (n * R + row) * V::kLanes, acc[n][row]);
    }
  }

  [[gnu::always_inline]] void run(int unit_count) {
    for (int first = 0; first < unit_count; first += kPanelUnits) {
      const int end = first + kPanelUnits < unit_count ? first + kPanelUnits : unit_count;
      for (int unit = first; unit < end; ++unit) {
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g) {
          source.template prefetch<kGroups>(unit, first_lane + g * kGroupRows);
        }
        add_half<0>(unit, unit - first);
        if constexpr (F::kHalves) add_half<1>(unit, unit - first);
      }
      to_next_units<R, F::kHalfCount>(x);
    }
  }
};

// Outputs [first_output, + kLanes) of a row; the last group of a matrix may end within.
template <class V>
void store_outputs(const Product& product, int32_t row, int32_t first_output,
                   typename V::Floats values) {
  if (row >= product.row_count || first_output >= product.output_count) return;
  float* out = product.rows[row].out + first_output;
  values = V::mul(values, V::broadcast(product.scale));
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

// A tile's outputs: rows from `row` on, outputs from `first_output` on.
template <class V, int R, int N>
[[gnu::always_inline]] inline void store_tile(const Product& product, int32_t row,
                                              int32_t first_output,
                                              const typename V::Floats (&acc)[N][R]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      store_outputs<V>(product, row + r, first_output + n * V::kLanes, acc[n][r]);
    }
  }
}

}  // namespace
}  // namespace cairn::cpu
