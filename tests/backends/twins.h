// Kernels of instruction sets that the testing machine may lack, in a form that more machines run:
// the same text with another encoding of its instructions, or with plain code in their place.
#pragma once

#include "backends/cpu/product/product.h"

namespace cairn::matmul_test {

extern const cpu::MatrixKernels avxvnni_twin;  // AVX-512VL's encoding of the dot product.

}  // namespace cairn::matmul_test
