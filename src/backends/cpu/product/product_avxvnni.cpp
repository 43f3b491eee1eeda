// The matrix kernels for AVX2 with AVX-VNNI: binds the kernel templates to the vectors.
#include "backends/cpu/product/matrix_vectors_avxvnni.h"
#include "backends/cpu/product/product_any.h"
#include "backends/cpu/product/quantize_avx2.h"

namespace cairn::avxvnni {

constinit const cpu::MatrixKernels matrix_kernels{.multiply = cpu::multiply_any<MatrixVectors>,
                                                  .quantize = avx2::quantize};

}  // namespace cairn::avxvnni
