// The matrix kernels for AMX: products of many rows by tiles. A tile multiplies 16 rows by 16
// outputs over a unit (or its half) exactly; vectors scale and add up its sums, as everywhere else,
// while the tiles of the next units are under way. Few rows and float weights are AVX-512's.
#include "backends/cpu/product/expand_amx.h"
#include "backends/cpu/product/tiles_amx.h"

namespace cairn::amx {
namespace {

using cpu::kGroupRows;
using cpu::PanelForm;
using cpu::PanelSource;
using cpu::Product;
using cpu::RowsView;
using cpu::Window;

using V = TileVectors;
using Scratch = cpu::PanelScratch<V>;

constexpr int kPassRows = 16;  // A tile's.
static_assert(kPassRows == cpu::kTileRows && V::kChunkRows % kPassRows == 0);
static_assert(V::kLanes == kGroupRows);

// Sums that are on their way from the tiles to the vectors. Making one takes about 90 cycles,
// scaling one about 30: the tile of a step is multiplied three steps ahead. It is stored a step
// after that: a store waits for its tile's product, and holds up all tiles behind it meanwhile.
constexpr int kRing = 4;
struct Ring {
  alignas(64) int32_t sums[kRing][kPassRows * kGroupRows];
};

// Sums are less than 2^22: as the last bits of 1.5 * 2^23 they are exact, and a subtraction makes
// f32 of them. While tiles run, one of the two units that convert and multiply is closed, both that
// add are open. With offsets, where multiplications wait anyway, nothing is gained.
template <class F>
constexpr bool starts_as_float() {
  return !F::kOffsets;
}
constexpr float kFloatStart = 12582912.0f;  // 1.5 * 2^23
// What a tile's sums start at then: the bits of kFloatStart.
struct StartTile {
  alignas(64) int32_t sums[kPassRows * kGroupRows];
};
constexpr StartTile make_start_tile() {
  StartTile tile{};
  for (int32_t& sum : tile.sums) sum = __builtin_bit_cast(int32_t, kFloatStart);
  return tile;
}
constexpr StartTile start_tile = make_start_tile();

// R rows times one panel; the x are of R rows and of the panel's columns.
template <class F, int R>
struct TilePass {
  const Tiles& tiles;
  const std::byte* panel;
  const std::byte* next;  // The panel of the next pass, whose first tiles are issued here; or null.
  const RowsView x;
  const int step_count;

  // Step kSlot of four, or that and any number of fours. A tile has 16 rows; where R is less, it
  // reads what lies behind the rows, and these sums are left alone.
  template <int kSlot>
  [[gnu::always_inline]] void issue(const std::byte* from, int step) const {
    constexpr int kHalf = kSlot % F::kHalfCount;
    constexpr int kLeft = Tiles::kActivations + kSlot % 2, kRight = Tiles::kWeights + kSlot % 2;
    const int unit = step / F::kHalfCount;
    tiles.template load<kRight>(from + unit * 512 + kHalf * 256, 64);
    tiles.template load<kLeft>(x.q + unit * 32 + kHalf * 16, cpu::kPanelUnits * 32);
    if constexpr (starts_as_float<F>()) {
      tiles.template load<kSlot>(start_tile.sums, 64);
    } else {
      tiles.template zero<kSlot>();
    }
    tiles.template dot<kSlot, kLeft, kRight>();
  }
  template <int kSlot>
  [[gnu::always_inline]] void store(Ring& ring) const {
    tiles.template store<kSlot>(ring.sums[kSlot]);
  }

  [[gnu::always_inline]] static V::Floats to_floats(V::Ints sums) {
    if constexpr (!starts_as_float<F>()) return V::to_floats(sums);
    return _mm512_sub_ps(_mm512_castsi512_ps(sums), _mm512_set1_ps(kFloatStart));
  }

  template <int kSlot>
  [[gnu::always_inline]] void scale(int step, const Ring& ring, V::Floats (&acc)[R]) const {
    constexpr int kHalf = kSlot % F::kHalfCount;
    const int unit = step / F::kHalfCount;
    const cpu::ScaleOffset<V> w = PanelSource<V, F>{panel}.scale(unit, kHalf, 0);
    const float* scales = x.scales + unit;
    const float* sums = x.sums + kHalf * R * cpu::kPanelUnits + unit;
#pragma GCC unroll 16
    for (int row = 0; row < R; ++row) {
      const V::Floats s = V::broadcast(scales[row * cpu::kPanelUnits]);
      const auto* isum = reinterpret_cast<const uint8_t*>(ring.sums[kSlot] + row * kGroupRows);
      acc[row] = V::fma(to_floats(V::load(isum)), V::mul(w.scale, s), acc[row]);
      if constexpr (F::kOffsets) {
        const V::Floats xsum = V::broadcast(sums[row * cpu::kPanelUnits]);
        acc[row] = V::fma(xsum, V::mul(w.offset, s), acc[row]);
      }
    }
  }

  template <int kSlot>
  [[gnu::always_inline]] void advance(int step, Ring& ring, V::Floats (&acc)[R]) const {
    constexpr int kAhead = kRing - 1, kTarget = (kSlot + kAhead) % kRing;
    if (step >= step_count) return;
    if (step + kAhead < step_count) {
      issue<kTarget>(panel, step + kAhead);
    } else if (next != nullptr) {
      issue<kTarget>(next, step + kAhead - step_count);
    }
    const bool has_dot = step + kAhead - 1 < step_count || next != nullptr;
    if (has_dot) store<(kSlot + kAhead - 1) % kRing>(ring);
    scale<kSlot>(step, ring, acc);
  }

  // Adds to `total`. `is_primed`: the first tiles are the work of the pass before. The accumulators
  // are variables of their own, so that no instruction on tiles makes the compiler store them.
  [[gnu::always_inline]] void run(bool is_primed, Ring& ring, V::Floats (&total)[1][R]) const {
    V::Floats acc[R];
#pragma GCC unroll 16
    for (int row = 0; row < R; ++row) acc[row] = total[0][row];
    if (!is_primed) {
      issue<0>(panel, 0);
      if (step_count > 1) issue<1>(panel, 1);
      if (step_count > 2) issue<2>(panel, 2);
      store<0>(ring);
      if (step_count > 1) store<1>(ring);
    }
    for (int step = 0; step < step_count; step += kRing) {
      advance<0>(step, ring, acc);
      advance<1>(step + 1, ring, acc);
      advance<2>(step + 2, ring, acc);
      advance<3>(step + 3, ring, acc);
    }
#pragma GCC unroll 16
    for (int row = 0; row < R; ++row) total[0][row] = acc[row];
  }
};

// Where the sums of a row are, and those of the next group kGroupFloats further.
constexpr int64_t kGroupFloats = kPassRows * kGroupRows;
float* sums_of(const Scratch& scratch, int32_t row) {
  return scratch.totals + int64_t(row / kPassRows) * V::kPanels * kGroupFloats +
         row % kPassRows * kGroupRows;
}

// R rows from `row` on times all panels of a window.
template <class F, int R>
void multiply_panels(const Product& product, const Tiles& tiles, const Scratch& scratch,
                     const Window& window, int32_t row) {
  const RowsView x = cpu::put_side_by_side<F::kHalves, F::kOffsets, R>(
      product, row, window.first_unit, window.unit_count, 0, scratch.rows);
  const int step_count = window.unit_count * F::kHalfCount;
  Ring ring;
  bool is_primed = false;
  const std::byte* panel = scratch.panels;
  float* sums = sums_of(scratch, row);
  for (int32_t output = window.first_output; output < window.end_output; output += kGroupRows) {
    // The next pass finds its tiles in the slots where this one would put them.
    const bool has_next = step_count % kRing == 0 && output + kGroupRows < window.end_output;
    const std::byte* next = has_next ? panel + PanelSource<V, F>::kBytes : nullptr;
    const TilePass<F, R> pass{tiles, panel, next, x, step_count};
    V::Floats total[1][R];
    for (int r = 0; r < R; ++r) {
      total[0][r] = window.is_first() ? V::zero() : V::load(sums + r * kGroupRows);
    }
    pass.run(is_primed, ring, total);
    for (int r = 0; r < R; ++r) V::store(sums + r * kGroupRows, total[0][r]);
    is_primed = has_next;
    panel += PanelSource<V, F>::kBytes;
    sums += kGroupFloats;
  }
}

// Row by row: those of outputs lie far apart.
void store_sums(const Product& product, const Scratch& scratch, const Window& window) {
  for (int32_t row = 0; row < product.row_count; ++row) {
    const float* sums = sums_of(scratch, row);
    for (int32_t output = window.first_output; output < window.end_output; output += kGroupRows) {
      cpu::store_outputs<V>(product, row, output, V::load(sums));
      sums += kGroupFloats;
    }
  }
}

template <class F>
void multiply_by_tiles(const Product& product) {
  const Tiles tiles(32 / F::kHalfCount);
  // Bytes of a plane become the signed weights that they stand for.
  const V::Bytes bias = _mm512_set1_epi8(char(product.weight->form.bias));
  const auto make_signed = [&bias](V::Bytes bytes) { return as_signed<F>(bytes, bias); };
  cpu::for_each_window<V, F>(
      product, make_signed, [&](const Scratch& scratch, const Window& window) {
        for (int32_t row = 0; row < product.row_count; row += kPassRows) {
          if (product.row_count - row > kPassRows / 2) {
            multiply_panels<PanelForm<F>, kPassRows>(product, tiles, scratch, window, row);
          } else {
            multiply_panels<PanelForm<F>, kPassRows / 2>(product, tiles, scratch, window, row);
          }
        }
        if (window.is_last()) store_sums(product, scratch, window);
      });
}

// Up to so many rows AVX-512 multiplies packed weights sooner than tiles multiply panels: measured,
// and with two scales a unit up to as many as it takes.
constexpr int32_t kVectorRows = 24, kVectorRowsOfHalves = cpu::kDirectRowsMax;

// Twice as many sums with offsets keep the vectors so busy that tiles only hold them up (measured:
// Q2_K, 119 to 139 billion products a second).
template <class F>
constexpr bool is_faster_by_tiles(int32_t row_count) {
  if (F::kHalves && F::kOffsets) return false;
  return row_count > (F::kHalves ? kVectorRowsOfHalves : kVectorRows);
}

// The kernels of AVX-512 take fewer rows at a time.
void multiply_by_vectors(Product product) {
  const int32_t all = product.row_count;
  for (int32_t row = 0; row < all; row += cpu::kChunkRows) {
    product.row_count = all - row < cpu::kChunkRows ? all - row : cpu::kChunkRows;
    avx512::matrix_kernels.multiply(product);
    product.rows += product.row_count;
  }
}

void multiply(const Product& product) {
  const cpu::PackedForm& form = product.weight->form;
  bool is_done = false;
  const bool is_left = cpu::is_float(form.plane) || product.weight->by_vectors;
  if (!is_left && product.row_count > kVectorRows) {
    cpu::visit_form(form, [&]<class F>(F) {
      if constexpr (is_faster_by_tiles<F>(V::kChunkRows)) {
        is_done = is_faster_by_tiles<F>(product.row_count);
        if (is_done) multiply_by_tiles<F>(product);
      }
    });
  }
  if (!is_done) multiply_by_vectors(product);
}

void quantize(const float* x, int64_t count, int8_t* q, float* scales, int32_t* sums) {
  avx512::matrix_kernels.quantize(x, count, q, scales, sums);
}

}  // namespace

constinit const cpu::MatrixKernels matrix_kernels{.multiply = multiply,
                                                  .quantize = quantize,
                                                  .direct_rows = kVectorRows,
                                                  .chunk_rows = V::kChunkRows,
                                                  .panel_groups = V::kPanels,
                                                  .scratch_bytes = Scratch::kBytesMax};

}  // namespace cairn::amx
