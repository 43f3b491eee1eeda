// The kernels of rules.h, for any vectors V. One row multiplies the packed form itself. More rows
// multiply panels as exact-1's do (product_quantized.h): some columns of some groups, expanded once
// and kept in the caches while all rows pass over them. Sums of 256 columns are integers in
// registers; the f32 sums of outputs wait in the first cache.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/cpu/product/product_tile.h"
#include "bench/integer_scales/rules.h"

namespace cairn::bench {
namespace {

using cpu::kGroupRows;
using cpu::kSuperUnits;

// What a super-block of a packed group holds beside its planes (packed.h).
template <class F>
struct PackedScales {
  const uint8_t* super;

  static constexpr int kStride = F::kOffsets ? 2 : 1;
  const uint8_t* d() const { return super; }
  const uint8_t* negative_dmin() const { return super + kGroupRows * 2; }
  // Of a unit, or of one half of it.
  const uint8_t* scale(int part) const {
    return super + kStride * kGroupRows * 2 + part * kStride * kGroupRows;
  }
  const uint8_t* minimum(int part) const { return scale(part) + kGroupRows; }
};

// What was added to weights to store them unsigned: Q3_K, Q6_K.
template <class F>
constexpr int bias() {
  return F::kOffsets ? 0 : F::kPlane == cpu::Plane::nibbles ? 4 : 32;
}

// Pairs of 16 bits that multiply pairs of the rows' sums: minima; or the scales, to take the bias
// off again where byte sums do not start with that.
template <class V, class F>
constexpr int pair_count() {
  return F::kOffsets || !V::kStarts ? 4 * F::kHalfCount : 0;
}

template <class V, class F>
typename V::Ints packed_pair(const PackedScales<F>& scales, int pair, int lane) {
  if constexpr (F::kOffsets) {
    return V::pairs(scales.minimum(2 * pair) + lane, scales.minimum(2 * pair + 1) + lane, 1);
  } else {
    return V::pairs(scales.scale(2 * pair) + lane, scales.scale(2 * pair + 1) + lane, -bias<F>());
  }
}

// 256 columns of R rows side by side.
template <int R, int kDigits>
struct RowsBlock {
  int8_t q[kDigits][kSuperUnits][R][32];
  int32_t starts[2 * kSuperUnits][R];
  int32_t pairs[kSuperUnits][R];
  int32_t factors[kSuperUnits][R];
  float scales[R];
};
template <int R>
struct WideRowsBlock {
  int16_t q[kSuperUnits][R][32];
  int32_t pairs[kSuperUnits][R];
  float scales[R];
};

template <class F>
int32_t sums_pair(const int16_t* sums, int pair) {
  if constexpr (F::kHalves) return int32_t(uint16_t(sums[2 * pair])) | sums[2 * pair + 1] << 16;
  const int32_t first = sums[4 * pair] + sums[4 * pair + 1];
  const int32_t second = sums[4 * pair + 2] + sums[4 * pair + 3];
  return (first & 0xffff) | second << 16;
}

template <class V, class F, Rule kRule, int R, int kDigits>
void put_row(const SuperRow& row, int super, int r, RowsBlock<R, kDigits>& to) {
  for (int unit = 0; unit < kSuperUnits; ++unit) {
    const int64_t at = int64_t(super) * 256 + unit * 32;
    std::memcpy(to.q[0][unit][r], row.high + at, 32);
    if constexpr (kDigits == 2) std::memcpy(to.q[1][unit][r], row.low + at, 32);
    const int32_t factor = kRule == Rule::factors ? row.factors[super * kSuperUnits + unit] : 1;
    if constexpr (kRule == Rule::factors) to.factors[unit][r] = V::word(factor);
  }
  const int16_t* sums = row.sums + super * 16;
  if constexpr (!F::kOffsets && V::kStarts) {
    for (int half = 0; half < 16; ++half) {
      const int32_t factor =
          kRule == Rule::factors ? row.factors[super * kSuperUnits + half / 2] : 1;
      to.starts[half][r] = -bias<F>() * sums[half] / factor;
    }
  }
  for (int pair = 0; pair < pair_count<V, F>(); ++pair) {
    to.pairs[pair][r] = sums_pair<F>(sums, pair);
  }
  to.scales[r] = row.scales[super];
}

template <class V, class F, Rule, int R>
void put_row(const SuperRow& row, int super, int r, WideRowsBlock<R>& to) {
  for (int unit = 0; unit < kSuperUnits; ++unit) {
    std::memcpy(to.q[unit][r], row.wide + int64_t(super) * 256 + unit * 32, 64);
  }
  if constexpr (F::kOffsets) {
    for (int pair = 0; pair < pair_count<V, F>(); ++pair) {
      to.pairs[pair][r] = sums_pair<F>(row.sums + super * 16, pair);
    }
  }
  to.scales[r] = row.scales[super];
}

// 256 columns of a group, ready to multiply.
struct PanelScales {
  int32_t pairs[kSuperUnits][kGroupRows];
  float d[kGroupRows], negative_dmin[kGroupRows];
};
struct Panel {
  uint8_t bytes[kSuperUnits][8][64];
  int32_t scales[2 * kSuperUnits][kGroupRows];
  PanelScales floats;
};
struct WidePanel {
  int16_t words[kSuperUnits][16][32];  // Weights times their scales.
  PanelScales floats;
};

// Where a tile's weights come from; vector n of a tile may lie in a later group than its first.
template <class V, class AnyPanel>
struct PanelsAt {
  const AnyPanel* panels;

  const AnyPanel& of(int lane) const { return panels[lane / kGroupRows]; }
  template <int kStep>
  auto bytes(int unit, int lane) const {
    return V::load(of(lane).bytes[unit][kStep] + 4 * (lane % kGroupRows));
  }
  auto words(int unit, int step, int lane) const {
    const int16_t* at = of(lane).words[unit][step] + 2 * (lane % kGroupRows);
    return V::load_words(reinterpret_cast<const int32_t*>(at));
  }
  auto scale(int part, int lane) const {
    return V::load_words(of(lane).scales[part] + lane % kGroupRows);
  }
  auto pair(int index, int lane) const {
    return V::load_words(of(lane).floats.pairs[index] + lane % kGroupRows);
  }
  auto d(int lane) const { return V::load(of(lane).floats.d + lane % kGroupRows); }
  auto negative_dmin(int lane) const {
    return V::load(of(lane).floats.negative_dmin + lane % kGroupRows);
  }
  template <int kGroups>
  void prefetch(int) const {}
};

template <class V, class F>
struct PackedAt {
  const cpu::PackedSource<V, F>& source;
  int super;

  PackedScales<F> scales(int lane) const {
    constexpr int kBytes = cpu::super_bytes(F::kScales, F::kHalves, F::kOffsets);
    return {source.group + lane / kGroupRows * source.group_bytes + int64_t(super) * kBytes};
  }
  template <int kStep>
  auto bytes(int unit, int lane) const {
    return source.template bytes<kStep>(super * kSuperUnits + unit, lane);
  }
  auto scale(int part, int lane) const {
    return V::words(scales(lane).scale(part) + lane % kGroupRows);
  }
  auto pair(int index, int lane) const {
    return packed_pair<V, F>(scales(lane), index, lane % kGroupRows);
  }
  auto d(int lane) const { return V::load_f16(scales(lane).d() + 2 * (lane % kGroupRows)); }
  auto negative_dmin(int lane) const {
    return V::load_f16(scales(lane).negative_dmin() + 2 * (lane % kGroupRows));
  }
  template <int kGroups>
  [[gnu::always_inline]] void prefetch(int unit) const {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      source.template prefetch<kGroups>(super * kSuperUnits + unit, g * kGroupRows);
    }
  }
};

// What both kinds of tiles begin with.
template <class V, int R, int N>
[[gnu::always_inline]] inline void clear(typename V::Ints (&sums)[N][R]) {
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sums[n][r] = V::no_words();
  }
}

// What both kinds of tiles end with: 256 columns' integers become f32.
template <class V, class F, class Source, class Block, int R, int N>
[[gnu::always_inline]] inline void add_floats(const Source& source, int first_lane, const Block& x,
                                              const typename V::Ints (&sums)[N][R], float* totals) {
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) {
    const int lane = first_lane + n * V::kLanes;
    const typename V::Floats d = source.d(lane);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      float* at = totals + (n * R + r) * V::kLanes;
      const typename V::Floats s = V::broadcast(x.scales[r]);
      typename V::Floats acc = V::fma(V::to_floats(sums[n][r]), V::mul(d, s), V::load(at));
      if constexpr (F::kOffsets) {
        typename V::Ints minima = V::no_words();
        for (int pair = 0; pair < pair_count<V, F>(); ++pair) {
          minima = V::add_pairs(minima, source.pair(pair, lane), x.pairs[pair][r]);
        }
        const typename V::Floats dmin = source.negative_dmin(lane);
        acc = V::fma(V::to_floats(minima), V::mul(dmin, s), acc);
      }
      V::store(at, acc);
    }
  }
}

// Byte products, multiplied by their scales as integers.
template <class V, class F, Rule kRule, int R, int N>
struct ScaledTile {
  static constexpr int kDigits = kRule == Rule::eleven ? 2 : 1;
  static constexpr int kSteps = F::kHalves ? 4 : 8;
  static constexpr int kGroups = (N * V::kLanes + kGroupRows - 1) / kGroupRows;
  using Ints = typename V::Ints;
  using Block = RowsBlock<R, kDigits>;
  using Dot = typename V::template ScaledDot<F::kPlane, kDigits, kSteps>;

  template <int kHalf, int kStep, class Source>
  [[gnu::always_inline]] static void add_vector(const Source& source, int unit, int first_lane,
                                                const Block& x, Dot (&dots)[N][R],
                                                Ints (&sums)[N][R]) {
    constexpr int kAt = kHalf * 4 + kStep;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      const int lane = first_lane + n * V::kLanes;
      const auto weights = source.template bytes<kAt>(unit, lane);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        dots[n][r].template add<kStep>(weights, &x.q[0][unit][r][4 * kAt],
                                       &x.q[kDigits - 1][unit][r][4 * kAt]);
        if constexpr (Dot::template ends_run<kStep>()) {
          Ints scale = source.scale(F::kHalves ? 2 * unit + kHalf : unit, lane);
          if constexpr (kRule == Rule::factors) scale = V::times(scale, x.factors[unit][r]);
          sums[n][r] = dots[n][r].add_to(sums[n][r], scale);
        }
      }
    }
  }

  template <int kHalf, class Source>
  [[gnu::always_inline]] static void add_half(const Source& source, int unit, int first_lane,
                                              const Block& x, Ints (&sums)[N][R]) {
    Dot dots[N][R];
    if constexpr (V::kStarts) {
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          dots[n][r].start(bias<F>() != 0 ? x.starts[2 * unit + kHalf][r] : 0);
        }
      }
    }
    add_vector<kHalf, 0>(source, unit, first_lane, x, dots, sums);
    add_vector<kHalf, 1>(source, unit, first_lane, x, dots, sums);
    add_vector<kHalf, 2>(source, unit, first_lane, x, dots, sums);
    add_vector<kHalf, 3>(source, unit, first_lane, x, dots, sums);
    if constexpr (!F::kHalves) {
      add_vector<kHalf, 4>(source, unit, first_lane, x, dots, sums);
      add_vector<kHalf, 5>(source, unit, first_lane, x, dots, sums);
      add_vector<kHalf, 6>(source, unit, first_lane, x, dots, sums);
      add_vector<kHalf, 7>(source, unit, first_lane, x, dots, sums);
    }
  }

  template <class Source>
  static void add(const Source& source, int first_lane, const Block& x, float* totals) {
    Ints sums[N][R];
    clear<V>(sums);
    for (int unit = 0; unit < kSuperUnits; ++unit) {
      source.template prefetch<kGroups>(unit);
      add_half<0>(source, unit, first_lane, x, sums);
      if constexpr (F::kHalves) add_half<1>(source, unit, first_lane, x, sums);
    }
    if constexpr (!F::kOffsets && pair_count<V, F>() > 0) {
      for (int pair = 0; pair < pair_count<V, F>(); ++pair) {
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) {
          const Ints pairs = source.pair(pair, first_lane + n * V::kLanes);
#pragma GCC unroll 16
          for (int r = 0; r < R; ++r) {
            sums[n][r] = V::add_pairs(sums[n][r], pairs, x.pairs[pair][r]);
          }
        }
      }
    }
    add_floats<V, F>(source, first_lane, x, sums, totals);
  }
};

// Weights that have been multiplied by their scales, in 16 bits, times activations in 16 bits.
template <class V, class F, int R, int N>
struct WideTile {
  using Ints = typename V::Ints;
  using Block = WideRowsBlock<R>;

  using Source = PanelsAt<V, WidePanel>;

  static void add(const Source& source, int first_lane, const Block& x, float* totals) {
    Ints sums[N][R];
    clear<V>(sums);
    for (int unit = 0; unit < kSuperUnits; ++unit) {
#pragma GCC unroll 16
      for (int step = 0; step < 16; ++step) {
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) {
          const Ints weights = source.words(unit, step, first_lane + n * V::kLanes);
#pragma GCC unroll 16
          for (int r = 0; r < R; ++r) {
            int32_t two;
            std::memcpy(&two, &x.q[unit][r][2 * step], 4);
            sums[n][r] = V::add_pairs(sums[n][r], weights, two);
          }
        }
      }
    }
    add_floats<V, F>(source, first_lane, x, sums, totals);
  }
};

template <class V, class F>
void expand_scales(const PackedScales<F>& scales, PanelScales& to) {
  for (int lane = 0; lane < kGroupRows; lane += V::kLanes) {
    V::store(to.d + lane, V::load_f16(scales.d() + 2 * lane));
    if constexpr (F::kOffsets) {
      V::store(to.negative_dmin + lane, V::load_f16(scales.negative_dmin() + 2 * lane));
    }
    for (int pair = 0; pair < pair_count<V, F>(); ++pair) {
      V::store_words(to.pairs[pair] + lane, packed_pair<V, F>(scales, pair, lane));
    }
  }
}

template <class V, class F>
void expand(const PackedAt<V, F>& from, Panel& panel) {
  const PackedScales<F> scales = from.scales(0);
  expand_scales<V, F>(scales, panel.floats);
  for (int unit = 0; unit < kSuperUnits; ++unit) {
    from.source.prefetch_next_group(from.super * kSuperUnits + unit);
    for (int lane = 0; lane < kGroupRows; lane += V::kLanes) {
      const auto put = [&]<int kStep>() {
        V::store(panel.bytes[unit][kStep] + 4 * lane, from.template bytes<kStep>(unit, lane));
      };
      put.template operator()<0>(), put.template operator()<1>(), put.template operator()<2>();
      put.template operator()<3>(), put.template operator()<4>(), put.template operator()<5>();
      put.template operator()<6>(), put.template operator()<7>();
      for (int half = 0; half < F::kHalfCount; ++half) {
        const int part = unit * F::kHalfCount + half;
        V::store_words(panel.scales[part] + lane, V::words(scales.scale(part) + lane));
      }
    }
  }
}

template <class V, class F>
void expand(const PackedAt<V, F>& from, WidePanel& panel) {
  const PackedScales<F> scales = from.scales(0);
  expand_scales<V, F>(scales, panel.floats);
  for (int unit = 0; unit < kSuperUnits; ++unit) {
    from.source.prefetch_next_group(from.super * kSuperUnits + unit);
    for (int lane = 0; lane < kGroupRows; lane += V::kLanes) {
      typename V::Ints by[2];
      for (int half = 0; half < F::kHalfCount; ++half) {
        by[half] = V::twice(scales.scale(unit * F::kHalfCount + half) + lane);
      }
      const auto put = [&]<int kStep>() {
        const auto bytes = from.template bytes<kStep>(unit, lane);
        const typename V::Ints scale = by[F::kHalves ? kStep / 4 : 0];
        int16_t* at = panel.words[unit][2 * kStep] + 2 * lane;
        V::store_words(reinterpret_cast<int32_t*>(at), V::even_times(bytes, bias<F>(), scale));
        at = panel.words[unit][2 * kStep + 1] + 2 * lane;
        V::store_words(reinterpret_cast<int32_t*>(at), V::odd_times(bytes, bias<F>(), scale));
      };
      put.template operator()<0>(), put.template operator()<1>(), put.template operator()<2>();
      put.template operator()<3>(), put.template operator()<4>(), put.template operator()<5>();
      put.template operator()<6>(), put.template operator()<7>();
    }
  }
}

template <class V, class F>
cpu::PackedSource<V, F> source_of(const SuperProduct& product, int32_t group) {
  const cpu::PackedMatrix& weight = *product.weight;
  return {.group = weight.data + int64_t(product.first_group + group) * weight.group_bytes,
          .group_bytes = weight.group_bytes,
          .scales_bytes = weight.scales_bytes,
          .unit_count = cpu::unit_count(weight),
          .table = V::load_table(weight.form.table)};
}

// Many rows. Columns are expanded kSupers super-blocks at a time.
template <class V, class F, Rule kRule>
struct Many {
  static constexpr bool kWide = kRule == Rule::eleven;
  static constexpr int kSupers = kWide ? 1 : 2;
  static constexpr int R = kWide ? V::kWideRows : V::kScaledRows;
  static constexpr int N = kWide ? V::kWideVectors : V::kScaledVectors;
  using Tile = std::conditional_t<kWide, WideTile<V, F, R, N>, ScaledTile<V, F, kRule, R, N>>;
  using AnyPanel = std::conditional_t<kWide, WidePanel, Panel>;
  using Block = typename Tile::Block;

  static void put_rows(const SuperProduct& product, int32_t super, int32_t count, Block* blocks) {
    for (int32_t row = 0; row < product.row_count; row += R) {
      for (int32_t i = 0; i < count; ++i, ++blocks) {
        for (int r = 0; r < R; ++r) {
          const int32_t index = row + r < product.row_count ? row + r : product.row_count - 1;
          put_row<V, F, kRule>(product.rows[index], super + i, r, *blocks);
        }
      }
    }
  }

  static void run(const SuperProduct& product) {
    auto* panels = reinterpret_cast<AnyPanel*>(product.scratch);  // [super][group]
    auto* totals = reinterpret_cast<float*>(panels + kSupers * cpu::kPanels);
    auto* blocks = reinterpret_cast<Block*>(totals + (cpu::kChunkRows + R) * 256);
    const int32_t supers = product.weight->cols / 256;
    const int32_t outputs = product.group_count * kGroupRows;
    std::memset(totals, 0, size_t(product.row_count + R) * size_t(outputs) * 4);
    for (int32_t super = 0; super < supers; super += kSupers) {
      const int32_t count = supers - super < kSupers ? supers - super : kSupers;
      for (int32_t group = 0; group < product.group_count; ++group) {
        const cpu::PackedSource<V, F> source = source_of<V, F>(product, group);
        for (int32_t i = 0; i < count; ++i) {
          expand<V, F>(PackedAt<V, F>{source, super + i}, panels[i * cpu::kPanels + group]);
        }
      }
      put_rows(product, super, count, blocks);
      // A tile's panels stay in the first cache while all rows pass.
      for (int32_t output = 0; output < outputs; output += N * V::kLanes) {
        const Block* block = blocks;
        for (int32_t row = 0; row < product.row_count; row += R) {
          float* at = totals + int64_t(row) * outputs + int64_t(output) * R;
          for (int32_t i = 0; i < count; ++i) {
            const PanelsAt<V, AnyPanel> source{panels + i * cpu::kPanels + output / kGroupRows};
            Tile::add(source, output % kGroupRows, *block++, at);
          }
        }
      }
    }
    for (int32_t row = 0; row < product.row_count; ++row) {
      const float* from = totals + int64_t(row / R * R) * outputs + row % R * V::kLanes;
      for (int32_t output = 0; output < outputs; output += V::kLanes) {
        // Tile, vector of the tile, row of the tile.
        V::store(product.rows[row].out + output, V::load(from + int64_t(output) * R));
      }
    }
  }
};

template <class V, class F, Rule kRule>
void multiply_one_row(const SuperProduct& product) {
  constexpr int N = V::kOneVectors;
  constexpr int kGroups = (N * V::kLanes + kGroupRows - 1) / kGroupRows;
  using Tile = ScaledTile<V, F, kRule, 1, N>;
  auto* blocks = reinterpret_cast<typename Tile::Block*>(product.scratch);
  const int32_t supers = product.weight->cols / 256;
  for (int32_t super = 0; super < supers; ++super) {
    put_row<V, F, kRule>(product.rows[0], super, 0, blocks[super]);
  }
  for (int32_t group = 0; group < product.group_count; group += kGroups) {
    const cpu::PackedSource<V, F> source = source_of<V, F>(product, group);
    for (int lane = 0; lane < kGroups * kGroupRows; lane += N * V::kLanes) {
      float* out = product.rows[0].out + group * kGroupRows + lane;
      for (int n = 0; n < N; ++n) V::store(out + n * V::kLanes, V::zero());
      for (int32_t super = 0; super < supers; ++super) {
        Tile::add(PackedAt<V, F>{source, super}, lane, blocks[super], out);
      }
    }
  }
}

template <class V, class F>
void multiply_form(const SuperProduct& product) {
  const bool one = product.row_count == 1;
  switch (product.rule) {
    case Rule::eight:
      return one ? multiply_one_row<V, F, Rule::eight>(product)
                 : Many<V, F, Rule::eight>::run(product);
    case Rule::factors:
      return one ? multiply_one_row<V, F, Rule::factors>(product)
                 : Many<V, F, Rule::factors>::run(product);
    case Rule::eleven:
      return one ? multiply_one_row<V, F, Rule::eleven>(product)
                 : Many<V, F, Rule::eleven>::run(product);
  }
}

template <class V>
void multiply_any_form(const SuperProduct& product) {
  using enum cpu::Plane;
  using enum cpu::Scales;
  const cpu::PackedForm& form = product.weight->form;
  using Q2K = cpu::Form<nibbles, super, true, true>;
  using Q3K = cpu::Form<nibbles, super, true, false>;
  using Q4K = cpu::Form<nibbles, super, false, true>;
  using Q5K = cpu::Form<bits5, super, false, true>;
  using Q6K = cpu::Form<bits6, super, true, false>;
  if (Q2K::is(form)) return multiply_form<V, Q2K>(product);
  if (Q3K::is(form)) return multiply_form<V, Q3K>(product);
  if (Q4K::is(form)) return multiply_form<V, Q4K>(product);
  if (Q5K::is(form)) return multiply_form<V, Q5K>(product);
  if (Q6K::is(form)) return multiply_form<V, Q6K>(product);
}

}  // namespace
}  // namespace cairn::bench
