// The two activations called GELU (Hendrycks and Gimpel, 2016). Part of numerics id exact-1; see
// base/elementary.h, through which they are used. Both are x times a number that falls like
// e^(-x^2 / 2) or faster, so the exponent is carried in two floats: otherwise its rounding alone
// would cost fifty ulp far left.
// Thread rule: pure.
#pragma once

#include "base/exponential.h"
#include "base/lanes.h"

namespace cairn::elementary {

// x / 2 * (1 + tanh(u)) with u = sqrt(2 / pi) * (x + 0.044715 x^3), which is x * sigmoid(2u).
template <class V>
[[gnu::always_inline]] inline V gelu_tanh(V x) {
  constexpr Pair<float> kLinear = {0x1.988454p0f, -0x1.857936p-25f};  // 2 sqrt(2 / pi)
  constexpr Pair<float> kCubic = {0x1.2444f2p-4f, 0x1.49b16ap-29f};   // that times 0.044715
  const V inside = clamp(x, -11.0f, 11.0f);
  const Pair<V> square = multiply_exact(inside, inside);
  const Pair<V> cubic{V(kCubic.high), V(kCubic.low)};
  const Pair<V> slope = multiply_add(square, cubic, kLinear);
  const Pair<V> exponent = multiply(Pair<V>{inside, V(0.0f)}, slope);
  return select(V(11.0f) < x, x, times_sigmoid(inside, exponent, inside));
}

// (a + 4) e^(a^2 / 2) Phi(-a) for 0 <= a <= 14.7, as a polynomial in q = (a - 4) / (a + 4),
// relative error 2^-29. Phi is the normal distribution function.
template <class V>
[[gnu::always_inline]] inline Pair<V> normal_tail(Pair<V> q) {
  V sum = V(-0x1.807f52p-15f);
  sum = fma(sum, q.high, V(-0x1.cf6b3cp-13f));
  sum = fma(sum, q.high, V(0x1.674f7cp-13f));
  sum = fma(sum, q.high, V(0x1.acff08p-10f));
  sum = fma(sum, q.high, V(-0x1.c9a8ecp-9f));
  sum = fma(sum, q.high, V(-0x1.ee5348p-8f));
  sum = fma(sum, q.high, V(0x1.eec844p-5f));
  sum = fma(sum, q.high, V(-0x1.7dff04p-3f));
  Pair<V> value = multiply_add(q, Pair<V>{sum, V(0.0f)}, {0x1.8c6dbap-2f, -0x1.61547cp-27f});
  value = multiply_add(q, value, {-0x1.373e3ap-1f, -0x1.97400cp-26f});
  return multiply_add(q, value, {0x1.82b4bcp-1f, -0x1.b249fp-27f});
}

// x * Phi(x), that is x / 2 * (1 + erf(x / sqrt(2))).
template <class V>
[[gnu::always_inline]] inline V gelu_erf(V x) {
  const V inside = clamp(x, -14.6f, 14.6f);
  const V magnitude = abs(inside);
  const V zero = V(0.0f);
  const Pair<V> divisor = add_exact(magnitude, V(4.0f));
  const Pair<V> q = divide(add_exact(magnitude, V(-4.0f)), divisor);
  const Pair<V> square = multiply_exact(magnitude, magnitude);
  const Power<V> power = exp_of_pair(Pair<V>{square.high * V(-0.5f), square.low * V(-0.5f)});
  // Phi(-|x|), still without the scales.
  const Pair<V> tail = divide(multiply(normal_tail(q), power.factor), divisor);
  // Left: x times it, scaled last. Right: x times what is missing to 1.
  const Pair<V> left = multiply(Pair<V>{inside, zero}, tail);
  const V left_value = times(left.high + left.low, power.scale);
  const V scaled = times(tail.high, power.scale);
  const V scaled_low = times(tail.low, power.scale);
  const Pair<V> rest = add_smaller(V(1.0f), zero - scaled);
  const V right_value = fma(inside, rest.high, inside * (rest.low - scaled_low));
  return select(V(14.0f) < x, x, select(x < zero, left_value, right_value));
}

}  // namespace cairn::elementary
