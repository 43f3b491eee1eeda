// The arguments of the matrix kernels of an instruction set, as plain data. The files of an
// instruction set include this, <cstdint>-like headers and intrinsics, and nothing else: the linker
// could give their copy of a shared inline function to other files, which would then fail on old
// machines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/pack/packed.h"

namespace cairn::cpu {

// One activation row that multiplies, quantized, rounded or f32, and where its outputs go.
struct ProductRow {
  const int8_t* q;  // [cols], with scales [cols / 32] and sums of 16 [cols / 16]; or
  const float* scales;
  const int32_t* sums;
  const uint16_t* rounded;  // [cols] in bf16, where the kernels round rows; or, of float weights,
  const float* x;           // [cols]
  float* out;               // The output of the product's first weight row.
};

inline constexpr int kTileRows = 16;  // Rows that one walk over panels multiplies at most.
// Up to so many rows multiply the packed form itself on every instruction set; and up to so many
// where that is still faster than panels (kDirectRows of the vectors).
inline constexpr int kDirectRows = 12, kDirectRowsMax = 48;
inline constexpr int kChunkRows = 256;  // Rows of a product at most,
// and where tiles multiply what panels were widened for; and groups of such a product.
inline constexpr int kTileChunkRows = 512, kTileGroups = 32;
inline constexpr int kPanelUnits = 16;  // Columns of a panel, in units.
inline constexpr int kPanels = 16;      // Groups that are panels at the same time.

// rows x some consecutive groups of one matrix.
struct Product {
  const PackedMatrix* weight;
  const uint8_t* groups;  // The first group.
  int32_t output_count;   // Weight rows from the first group on; the last group may be partial.
  int32_t row_count;      // 1..chunk_rows of the kernels.
  const ProductRow* rows;
  const float* bias;   // Of the first weight row; may be null.
  std::byte* scratch;  // product_scratch_bytes(), 64-byte aligned.
  float scale = 1.0f;  // Of all sums, before the bias.
};

// A panel: a group's columns, expanded to one byte a weight and f32 scales.
static constexpr int64_t panel_bytes(bool halves, bool offsets) {
  return int64_t(kPanelUnits) * (512 + scale_parts(halves, offsets) * kGroupRows * 4);
}

// Activation rows side by side: for each unit of a row 32 bytes, a scale, and twice (halves) a
// start value and a sum. `row_units` is the number of units of all rows, a multiple of kPanelUnits.
static constexpr int64_t side_by_side_bytes(int64_t row_units) {
  return row_units * (32 + 4 + 8 + 8);
}

static constexpr int64_t padded_units(const PackedMatrix& weight) {
  return (unit_count(weight) + kPanelUnits - 1) / kPanelUnits * kPanelUnits;
}

// Sums of a product between two panels of columns.
static constexpr int64_t totals_bytes(int rows, int groups) {
  return int64_t(rows) * groups * kGroupRows * 4;
}

// Of float weights of 16 bits: columns and groups of a panel; and what one takes with the sums of
// all rows, of which a few more are computed than there are.
inline constexpr int kFloatPanelColumns = 1024, kFloatPanelGroupsMax = 4;
inline constexpr size_t kFloatPanelBytes = size_t(kFloatPanelColumns + kChunkRows + kTileRows) *
                                           kFloatPanelGroupsMax * kGroupRows * sizeof(float);

static constexpr size_t product_scratch_bytes(const PackedMatrix& weight) {
  if (weight.form.plane == Plane::f32) return 0;
  if (is_float(weight.form.plane)) return kFloatPanelBytes;
  const int64_t direct = side_by_side_bytes(padded_units(weight) * kDirectRowsMax);
  const int64_t panels =
      side_by_side_bytes(kPanelUnits * kTileRows) + totals_bytes(kChunkRows, kPanels) +
      kPanels * panel_bytes(weight.form.halves, weight.form.offsets);
  return size_t(direct > panels ? direct : panels);
}

// The kernels of one instruction set.
struct MatrixKernels {
  void (*multiply)(const Product& product);
  // x[count] → q[count], scales[count / 32], sums[count / 16]; count is a multiple of 32. What rows
  // are multiplied as where weights are quantized: this, or rounded, or neither has kernels.
  void (*quantize)(const float* x, int64_t count, int8_t* q, float* scales,
                   int32_t* sums) = nullptr;
  // x[count] → rounded[count].
  void (*round)(const float* x, int64_t count, uint16_t* rounded) = nullptr;
  int32_t direct_rows = kDirectRows;  // More of them multiply panels.
  int32_t chunk_rows = kChunkRows;    // Of a product at most,
  int32_t float_rows = kChunkRows;    // and of a task with float weights.
  int32_t panel_groups = kPanels;     // Of a task that multiplies panels, at most,
  int32_t float_groups = 4;           // or many rows and float weights.
  size_t scratch_bytes = 0;           // Of a product, where product_scratch_bytes() is less.
};

}  // namespace cairn::cpu

namespace cairn::avx2 {
extern const cpu::MatrixKernels matrix_kernels;
}
namespace cairn::avxvnni {
extern const cpu::MatrixKernels matrix_kernels;
}
namespace cairn::avx512 {
extern const cpu::MatrixKernels matrix_kernels;
}
namespace cairn::amx {
extern const cpu::MatrixKernels matrix_kernels;
}
namespace cairn::neon {
extern const cpu::MatrixKernels matrix_kernels;
}
