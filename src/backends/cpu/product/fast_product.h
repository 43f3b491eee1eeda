// The products of numerics id fast-1: both sides rounded to bf16, pairs of columns added up in f32
// (docs/numerics.md). The kernel tables of every instruction set, and the choice among them.
// Weights are packed as for exact-1; they are expanded to panels of bf16 during the product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/product/product.h"

namespace cairn::cpu {

// Columns of a window: a panel of four groups, [column / 2][16 outputs][2] in bf16, passes over all
// rows from the first and second level caches.
inline constexpr int kFastColumns = 512;
inline constexpr int64_t kFastPanelBytes = int64_t(kFastColumns) * kGroupRows * 2;
// A tile may read rows past the last one.
inline constexpr int64_t kFastRowsBytes = int64_t(kChunkRows + kTileRows) * kFastColumns * 2;

// Sums between two windows, of as many rows.
inline constexpr int64_t kFastTotalsBytes =
    int64_t(kChunkRows + kTileRows) * kPanels * kGroupRows * 4;

// Rows, sums and panels, in this order.
inline constexpr size_t kFastScratchBytes =
    size_t(kFastRowsBytes + kFastTotalsBytes + kPanels * kFastPanelBytes);

}  // namespace cairn::cpu

namespace cairn::avx512bf16 {
extern const cpu::MatrixKernels matrix_kernels;
}
namespace cairn::amxbf16 {
extern const cpu::MatrixKernels matrix_kernels;
}
