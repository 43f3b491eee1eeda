// The matrix kernels for AVX-512 with VNNI: binds the texts to the vectors.
#include "backends/cpu/matrix_vectors_avx512.h"
#include "backends/cpu/product_float.h"
#include "backends/cpu/product_quantized.h"
#include "backends/cpu/quantize_avx512.h"

namespace cairn::avx512 {
namespace {

void multiply(const cpu::Product& product) {
  if (cpu::is_float(product.weight->form.plane))
    return cpu::multiply_floats<MatrixVectors>(product);
  cpu::multiply_quantized<MatrixVectors>(product);
}

}  // namespace

constinit const cpu::MatrixKernels matrix_kernels{.multiply = multiply, .quantize = quantize};

}  // namespace cairn::avx512
