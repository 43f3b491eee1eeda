// The matrix kernels for AVX-512 with VNNI: binds the kernel templates to the vectors.
#include "backends/cpu/product/matrix_vectors_avx512.h"
#include "backends/cpu/product/product_any.h"
#include "backends/cpu/product/quantize_avx512.h"

namespace cairn::avx512 {

constinit const cpu::MatrixKernels matrix_kernels{.multiply = cpu::multiply_any<MatrixVectors>,
                                                  .quantize = quantize,
                                                  .direct_rows = MatrixVectors::kDirectRows};

}  // namespace cairn::avx512
