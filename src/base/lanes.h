// The few operations in which arithmetic is written once, for one number and for a SIMD register. A
// lane type V is a struct of one SIMD register (or plain float, below); argument dependent lookup
// finds, in V's own namespace, what is listed here. Each item is one or two instructions.
// Everything is always_inline, so that a file compiled for one instruction set emits no symbol that
// the linker could give to a file compiled for another.
#pragma once

#include <bit>
#include <cstdint>

namespace cairn::elementary {

//   V(float)                 every lane that number          Int(int32_t)   the same in integers
//   a + b, a - b, a * b, a / b, fma(a, b, c) = a * b + c rounded once
//   a < b                    a mask; false where either is NaN
//   select(mask, a, b)       a where the mask is true, else b
//   bits_of(v) -> Int, from_bits(Int) -> V                   the IEEE pattern, no conversion
//   Int: a + b, a - b, a & b, a | b, a << k, a >> k          k a constant; >> keeps the sign
//   LaneInt<V>::type         Int of V; for a struct it is V::Int

template <class V>
struct LaneInt {
  using type = typename V::Int;
};
template <>
struct LaneInt<float> {
  using type = int32_t;
};
template <class V>
using IntOf = typename LaneInt<V>::type;

// One lane. Without -mfma the builtin is the C library's exact fmaf: slower, and the same bits.
[[gnu::always_inline]] inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
[[gnu::always_inline]] inline float select(bool mask, float a, float b) {
  return mask ? a : b;
}
[[gnu::always_inline]] inline int32_t bits_of(float v) {
  return __builtin_bit_cast(int32_t, v);
}
[[gnu::always_inline]] inline float from_bits(int32_t v) {
  return __builtin_bit_cast(float, v);
}

// Built from the vocabulary, for every lane type.
template <class V>
[[gnu::always_inline]] inline V abs(V x) {
  return from_bits(bits_of(x) & IntOf<V>(0x7fffffff));
}

template <class V>
[[gnu::always_inline]] inline V copy_sign(V magnitude, V sign) {
  return from_bits((bits_of(magnitude) & IntOf<V>(0x7fffffff)) |
                   (bits_of(sign) & IntOf<V>(INT32_MIN)));
}

// The nearer end where x is outside; NaN stays NaN.
template <class V>
[[gnu::always_inline]] inline V clamp(V x, float low, float high) {
  const V raised = select(x < V(low), V(low), x);
  return select(V(high) < raised, V(high), raised);
}

// A number as the unevaluated sum of two: 48 bits where 24 would round too early.
// Invariant: |low| is at most about one ulp of high.
template <class V>
struct Pair {
  V high, low;
};

// a + b exactly. REQUIRES: |a| >= |b|, or a is 0.
template <class V>
[[gnu::always_inline]] inline Pair<V> add_smaller(V a, V b) {
  const V sum = a + b;
  return {sum, b - (sum - a)};
}

// a + b exactly.
template <class V>
[[gnu::always_inline]] inline Pair<V> add_exact(V a, V b) {
  const V sum = a + b;
  const V b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// a * b exactly, as long as the product's lower half is not subnormal.
template <class V>
[[gnu::always_inline]] inline Pair<V> multiply_exact(V a, V b) {
  const V product = a * b;
  return {product, fma(a, b, V(0.0f) - product)};
}

template <class V>
[[gnu::always_inline]] inline Pair<V> multiply(Pair<V> a, Pair<V> b) {
  const Pair<V> product = multiply_exact(a.high, b.high);
  return {product.high, fma(a.high, b.low, fma(a.low, b.high, product.low))};
}

// a * b + c, where c is a constant given as a pair of floats.
template <class V>
[[gnu::always_inline]] inline Pair<V> multiply_add(Pair<V> a, Pair<V> b, Pair<float> c) {
  const Pair<V> product = multiply(a, b);
  const Pair<V> sum = add_exact(V(c.high), product.high);
  return {sum.high, sum.low + (product.low + V(c.low))};
}

// a / b: one division, then what it left over divided by multiplying with the reciprocal.
template <class V>
[[gnu::always_inline]] inline Pair<V> divide(Pair<V> a, Pair<V> b) {
  const V inverse = V(1.0f) / b.high;
  const V quotient = a.high * inverse;
  const V minus_quotient = V(0.0f) - quotient;
  const V rest = fma(minus_quotient, b.low, fma(minus_quotient, b.high, a.high) + a.low);
  return {quotient, rest * inverse};
}

}  // namespace cairn::elementary
