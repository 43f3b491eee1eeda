// The matrix kernels for AVX2 with AVX-VNNI: binds the texts to the vectors.
#include "backends/cpu/matrix_vectors_avxvnni.h"
#include "backends/cpu/product_float.h"
#include "backends/cpu/product_quantized.h"
#include "backends/cpu/quantize_avx2.h"

namespace cairn::avxvnni {
namespace {

void multiply(const cpu::Product& product) {
  if (cpu::is_float(product.weight->form.plane))
    return cpu::multiply_floats<MatrixVectors>(product);
  cpu::multiply_quantized<MatrixVectors>(product);
}

}  // namespace

constinit const cpu::MatrixKernels matrix_kernels{.multiply = multiply, .quantize = avx2::quantize};

}  // namespace cairn::avxvnni
