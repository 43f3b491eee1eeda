// The matrix kernels for AVX2 with FMA and F16C: binds the kernel templates to the vectors.
#include "backends/cpu/product/matrix_vectors_avx2.h"
#include "backends/cpu/product/product_any.h"
#include "backends/cpu/product/quantize_avx2.h"

namespace cairn::avx2 {

constinit const cpu::MatrixKernels matrix_kernels{.multiply = cpu::multiply_any<MatrixVectors>,
                                                  .quantize = quantize};

}  // namespace cairn::avx2
