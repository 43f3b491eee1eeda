// The elementary functions of numerics id exact-1: polynomials in f32 with written-out fused
// multiply-adds, no C library, no tables, no branches on values. One template for scalars and SIMD
// registers (base/lanes.h), so every machine computes the same bits. Errors against the true value,
// over all finite floats, are below 2 ulp (tests/base/elementary_test.cpp has the figures);
// subnormal results are kept, infinities have their limits, NaN gives NaN.
// Polynomials: minimax fits with coefficients rounded to f32 as they were fitted.
// Thread rule: pure.
#pragma once

#include "base/exponential.h"
#include "base/gelu.h"
#include "base/lanes.h"

namespace cairn::elementary {

// P in log(1 + t) = t - t^2 / 2 + t^3 P(t) for t in [0, 1], relative error of the sum 2^-32.
template <class V>
[[gnu::always_inline]] inline V log1p_polynomial(V t) {
  V sum = V(-0x1.738502p-10f);
  sum = fma(sum, t, V(0x1.43220cp-7f));
  sum = fma(sum, t, V(-0x1.07019cp-5f));
  sum = fma(sum, t, V(0x1.11516p-4f));
  sum = fma(sum, t, V(-0x1.a87f58p-4f));
  sum = fma(sum, t, V(0x1.15c514p-3f));
  sum = fma(sum, t, V(-0x1.51fd3ap-3f));
  sum = fma(sum, t, V(0x1.9921aep-3f));
  sum = fma(sum, t, V(-0x1.fff6ep-3f));
  return fma(sum, t, V(0x1.555532p-2f));
}

// Natural logarithm: 0 gives -infinity, a negative number NaN.
template <class V>
[[gnu::always_inline]] inline V log(V x) {
  const auto is_small = x < V(0x1p-126f);
  const V scaled = select(is_small, x * V(0x1p25f), x);
  // Mantissas from sqrt(1/2) to sqrt(2), so that log(1) has nothing to cancel.
  const IntOf<V> bits = bits_of(abs(scaled));
  const IntOf<V> exponent = (bits - IntOf<V>(0x3f3504f3)) >> 23;
  const V f = from_bits(bits - (exponent << 23)) - V(1.0f);
  // An integer below 2^22 becomes a float by way of the last bits of 1.5 * 2^23.
  const V shifted = from_bits(exponent + IntOf<V>(bits_of(0x1.8p23f)));
  const V count = shifted - V(0x1.8p23f) - select(is_small, V(25.0f), V(0.0f));
  V sum = V(0x1.13be0cp-4f);
  sum = fma(sum, f, V(-0x1.dd992ap-4f));
  sum = fma(sum, f, V(0x1.e6dd24p-4f));
  sum = fma(sum, f, V(-0x1.fc3e3ap-4f));
  sum = fma(sum, f, V(0x1.233af6p-3f));
  sum = fma(sum, f, V(-0x1.555b8cp-3f));
  sum = fma(sum, f, V(0x1.99a478p-3f));
  sum = fma(sum, f, V(-0x1.000008p-2f));
  sum = fma(sum, f, V(0x1.555548p-2f));
  sum = fma(sum, f, V(-0.5f));
  // count * ln 2 (its first 16 bits) is exact and larger than f, or 0.
  const Pair<V> line = add_smaller(count * V(0x1.62e4p-1f), f);
  const V low = line.low + fma(sum, f * f, count * V(0x1.7f7d1cp-20f));
  const V finite = line.high + low;
  const V infinity = V(__builtin_inff());
  const V from_zero = select(V(0.0f) < x, finite, V(0.0f) - infinity);
  const V ordered = select(x < infinity, from_zero, x + x);  // Infinity and NaN stay themselves.
  return select(x < V(0.0f), V(__builtin_nanf("")), ordered);
}

template <class V>
[[gnu::always_inline]] inline V sigmoid(V x) {
  const V inside = clamp(x, -110.0f, 110.0f);
  return times_sigmoid(V(1.0f), Pair<V>{inside, V(0.0f)}, inside);
}

// x * sigmoid(x)
template <class V>
[[gnu::always_inline]] inline V silu(V x) {
  const V inside = clamp(x, -110.0f, 110.0f);
  const V value = times_sigmoid(inside, Pair<V>{inside, V(0.0f)}, inside);
  return select(V(110.0f) < x, x, value);
}

// log(1 + e^x)
template <class V>
[[gnu::always_inline]] inline V softplus(V x) {
  const V below = V(0.0f) - abs(clamp(x, -110.0f, 110.0f));
  const Power<V> power = exp_of_pair(Pair<V>{below, V(0.0f)});
  const V t = times(power.factor.high, power.scale);
  const V t_low = times(power.factor.low, power.scale);
  // log(1 + t) = t - t^2 / 2 + t^3 P(t), the first two terms without rounding.
  const Pair<V> half = multiply_exact(t * V(-0.5f), t);
  const Pair<V> bent = add_smaller(t, half.high);
  const Pair<V> sum = add_exact(select(x < V(0.0f), V(0.0f), x), bent.high);
  // What is below t counts 1 / (1 + t) times, for which 1 - t / 2 is near enough.
  const V below_t = fma(t_low, fma(t, V(-0.5f), V(1.0f)), half.low);
  const V low = sum.low + (bent.low + below_t);
  const V value = sum.high + fma(log1p_polynomial(t) * (t * t), t, low);
  return select(V(110.0f) < x, x, value);
}

template <class V>
[[gnu::always_inline]] inline V tanh(V x) {
  // Near zero: x + x^3 P(x^2), relative error 2^-32.
  const V square = x * x;
  V sum = V(0x1.29ad8cp-9f);
  sum = fma(sum, square, V(-0x1.0fddbp-7f));
  sum = fma(sum, square, V(0x1.6434dap-6f));
  sum = fma(sum, square, V(-0x1.b9fb1ap-5f));
  sum = fma(sum, square, V(0x1.111096p-3f));
  sum = fma(sum, square, V(-0x1.555554p-2f));
  const V near = fma(sum * square, x, x);
  // Elsewhere: 1 - 2t / (1 + t) with t = e^-2|x|. From 9.02 on that rounds to 1.
  const V magnitude = abs(clamp(x, -10.0f, 10.0f));
  const Power<V> power = exp_of_pair(Pair<V>{magnitude * V(-2.0f), V(0.0f)});
  const V t = times(power.factor.high, power.scale);
  const V far = V(1.0f) - (t + t) / (V(1.0f) + t);
  return copy_sign(select(abs(x) < V(0.5625f), near, far), x);
}

// Sine and cosine in f64 of x radians, |x| <= 2^24, each within 1 ulp; the same bits everywhere.
// For the angles of rotary positions, which are rounded to f32 afterwards. Beyond that range, and
// for infinities and NaN, both are NaN.
void sincos(double x, double& sine, double& cosine);

}  // namespace cairn::elementary
