// The matrix kernels for AVX2 with AVX-VNNI: binds the texts to the vectors.
#include "backends/cpu/lanes/quantize_avx2.h"
#include "backends/cpu/product/matrix_vectors_avxvnni.h"
#include "backends/cpu/product/product_any.h"

namespace cairn::avxvnni {

constinit const cpu::MatrixKernels matrix_kernels{.multiply = cpu::multiply_any<MatrixVectors>,
                                                  .quantize = avx2::quantize};

}  // namespace cairn::avxvnni
