// A product of any weights: which of the two templates multiplies them. Rows of either have the
// bits that docs/numerics.md defines.
#pragma once

#include "backends/cpu/product/product_float.h"
#include "backends/cpu/product/product_quantized.h"

namespace cairn::cpu {
namespace {

template <class V>
void multiply_any(const Product& product) {
  if (is_float(product.weight->form.plane)) return multiply_floats<V>(product);
  multiply_quantized<V>(product);
}

}  // namespace
}  // namespace cairn::cpu
