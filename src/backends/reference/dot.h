// The sum of products that defines one output of a matrix product: one accumulator, indices
// ascending, every step written out (docs/numerics.md). Pure functions, shared by the products of
// plain and of expert weights. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/weight.h"
#include "quant/quant.h"

namespace cairn::reference {

// One quantized activation row, or the part of it that one weight row multiplies.
struct QuantizedRow {
  const int8_t* q;      // [width]
  const float* scales;  // [width / 32]
};

// A weight row as units of 32. REQUIRES: units has weight.cols / 32 entries.
void read_units(const Weight& weight, const std::byte* row, std::span<quant::Unit> units);

// For each unit, ascending; s is the activation's scale, every product below is one rounding:
//   formats without halves: acc = fma(float(isum), scale * s, acc), and with offsets then
//   acc = fma(float(xsum), offset * s, acc), both sums over 32, exact in int32;
//   formats with halves: the same for the lower 16 (isum, then its offset), then the upper 16.
float dot(const quant::Type& type, std::span<const quant::Unit> units, const QuantizedRow& x);

// acc = fma(w[k], x[k], acc), k ascending.
float dot(std::span<const float> weights, const float* x);

}  // namespace cairn::reference
