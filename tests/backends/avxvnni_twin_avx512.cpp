// The kernels of product_avxvnni.cpp with the byte dot product in the encoding of AVX-512VL.
#include "backends/cpu/product/matrix_vectors_avxvnni.h"
#include "backends/cpu/product/product_float.h"
#include "backends/cpu/product/product_quantized.h"
#include "backends/cpu/product/quantize_avx2.h"
#include "tests/backends/twins.h"

namespace cairn::matmul_test {
namespace {

void multiply(const cpu::Product& product) {
  if (cpu::is_float(product.weight->form.plane))
    return cpu::multiply_floats<avxvnni::MatrixVectors>(product);
  cpu::multiply_quantized<avxvnni::MatrixVectors>(product);
}

}  // namespace

constinit const cpu::MatrixKernels avxvnni_twin{.multiply = multiply, .quantize = avx2::quantize};

}  // namespace cairn::matmul_test
