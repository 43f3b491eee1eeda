// What the matrix kernels of an instruction set are asked for, as plain data. The files of an
// instruction set include this, <cstdint>-like headers and intrinsics, and nothing else: whatever
// inline function they shared with other files might be linked from here and fail on old machines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/packed.h"

namespace cairn::cpu {

// One activation row that multiplies, quantized or f32, and where its outputs go.
struct ProductRow {
  const int8_t* q;  // [cols], with scales [cols / 32] and sums of 16 [cols / 16]; or
  const float* scales;
  const int32_t* sums;
  const float* x;  // [cols]
  float* out;      // The output of the product's first weight row.
};

inline constexpr int kRowsAtOnce = 12;  // Rows that one pass over a panel multiplies at most.
inline constexpr int kDirectRows = 4;   // Up to so many rows multiply the packed form itself.
inline constexpr int kChunkRows = 128;  // Rows of a product at most.

// rows x some consecutive groups of one matrix.
struct Product {
  const PackedMatrix* weight;
  const uint8_t* groups;  // The first group.
  int32_t output_count;   // Weight rows from the first group on; the last group may be partial.
  int32_t row_count;      // 1..kChunkRows
  const ProductRow* rows;
  const float* bias;   // Of the first weight row; may be null.
  std::byte* scratch;  // product_scratch_bytes(), 64-byte aligned.
};

// A run of panels that fits the second level cache: groups expanded to one byte a weight.
static constexpr int64_t panel_bytes(const PackedMatrix& weight) {
  const int parts = scale_parts(weight.form.halves, weight.form.offsets);
  return int64_t(unit_count(weight)) * (512 + parts * kGroupRows * 4);
}

static constexpr int32_t panels_at_once(const PackedMatrix& weight) {
  const int64_t fitting = 600 * 1024 / (panel_bytes(weight) + 1);
  return fitting < 1 ? 1 : fitting > 8 ? 8 : int32_t(fitting);
}

// Interleaved activation rows: for each row of a pass 32 bytes, a scale, and twice (halves) a start
// value and a sum.
static constexpr int64_t interleaved_bytes(const PackedMatrix& weight) {
  return int64_t(unit_count(weight)) * (32 + 4 + 16) * kRowsAtOnce / 64 * 64 + 5 * 64;
}

static constexpr size_t product_scratch_bytes(const PackedMatrix& weight) {
  if (is_float(weight.form.plane)) return 0;
  return size_t(interleaved_bytes(weight) + panels_at_once(weight) * panel_bytes(weight));
}

// The kernels of one instruction set.
struct MatrixKernels {
  void (*multiply)(const Product& product);
  // x[count] → q[count], scales[count / 32], sums[count / 16]; count is a multiple of 32.
  void (*quantize)(const float* x, int64_t count, int8_t* q, float* scales, int32_t* sums);
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
