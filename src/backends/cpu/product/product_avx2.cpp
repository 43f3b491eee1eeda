// The matrix kernels for AVX2 with FMA and F16C: binds the texts to the vectors.
#include "backends/cpu/lanes/quantize_avx2.h"
#include "backends/cpu/product/matrix_vectors_avx2.h"
#include "backends/cpu/product/product_any.h"

namespace cairn::avx2 {

constinit const cpu::MatrixKernels matrix_kernels{.multiply = cpu::multiply_any<MatrixVectors>,
                                                  .quantize = quantize};

}  // namespace cairn::avx2
