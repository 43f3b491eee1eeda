// The products of numerics id fast-1: both sides rounded to bf16, pairs of columns added up in f32
// (docs/numerics.md). The kernel tables of the instruction sets that have such products. Weights
// are packed as for exact-1; they are expanded to panels of bf16 during the product.
#pragma once

#include "backends/cpu/product/product.h"

namespace cairn::cpu {

// Columns that the kernels multiply at a time.
inline constexpr int kFastColumns = 512;

}  // namespace cairn::cpu

namespace cairn::avx512bf16 {
extern const cpu::MatrixKernels matrix_kernels;
}
namespace cairn::amxbf16 {
extern const cpu::MatrixKernels matrix_kernels;
}
