// The exponential, also in more than f32 precision: e^x as a sum of two floats and two powers of
// two. Part of numerics id exact-1; see base/elementary.h, through which it is used. Polynomial: a
// minimax fit with coefficients rounded to f32 as it was fitted. Thread rule: pure.
#pragma once

#include "base/lanes.h"

namespace cairn::elementary {

// 2^count as two powers of two, because one float cannot hold 2^-149 and below.
template <class V>
struct Scale {
  V count;
  V scale_1, scale_2;
};

// x * 2^count; rounds once, into the subnormal numbers, where x * scale_1 is a normal number, and
// otherwise is far below all that it is added to. Lanes that do this in one instruction say so.
template <class V>
[[gnu::always_inline]] inline V times(V x, const Scale<V>& scale) {
  if constexpr (requires { times_power_of_two(x, scale.count); }) {
    return times_power_of_two(x, scale.count);
  } else {
    return x * scale.scale_1 * scale.scale_2;
  }
}

// e^x as factor * scale.
template <class V>
struct Power {
  Pair<V> factor;  // In [0.7, 1.42].
  Scale<V> scale;
};

// What is left of x after a multiple of ln 2 is taken off.
template <class V>
struct Reduced {
  V rest, rest_low;  // x = count * ln 2 + rest + rest_low; |rest| <= 0.347.
  Scale<V> scale;
};

template <class V>
[[gnu::always_inline]] inline Reduced<V> reduce_by_ln2(Pair<V> x) {
  // Adding 1.5 * 2^23 leaves no bits behind the point: the sum's last bits are the count.
  constexpr float kRounder = 0x1.8p23f;
  const V shifted = fma(x.high, V(0x1.715476p0f), V(kRounder));  // log2(e)
  const V count = shifted - V(kRounder);
  Reduced<V> out{};
  out.rest = fma(count, V(-0x1.62e43p-1f), x.high);     // Exact: ln 2 is cut to 21 bits here,
  out.rest_low = fma(count, V(0x1.05c61p-29f), x.low);  // and this is what was cut off.
  const IntOf<V> exponent = bits_of(shifted) - IntOf<V>(bits_of(kRounder));
  const IntOf<V> half = exponent >> 1;
  out.scale = {.count = count,
               .scale_1 = from_bits((half + IntOf<V>(127)) << 23),
               .scale_2 = from_bits((exponent - half + IntOf<V>(127)) << 23)};
  return out;
}

// e^r - 1 - r for |r| <= 0.347, relative error of the sum 2^-28.
template <class V>
[[gnu::always_inline]] inline V exp_tail(V r) {
  V sum = V(0x1.6a5e34p-10f);
  sum = fma(sum, r, V(0x1.123adp-7f));
  sum = fma(sum, r, V(0x1.5558a2p-5f));
  sum = fma(sum, r, V(0x1.55549p-3f));
  sum = fma(sum, r, V(0x1.fffffcp-2f));
  return sum * (r * r);
}

// e^x for a pair. REQUIRES: |x| <= 126.
template <class V>
[[gnu::always_inline]] inline Power<V> exp_of_pair(Pair<V> x) {
  const Reduced<V> reduced = reduce_by_ln2(x);
  const Pair<V> line = add_smaller(V(1.0f), reduced.rest);
  const Pair<V> sum = add_smaller(line.high, exp_tail(reduced.rest));
  // The rest's lower part counts e^r times; the sum is e^r well enough for that.
  const V low = fma(reduced.rest_low, sum.high, sum.low + line.low);
  return {{sum.high, low}, reduced.scale};
}

template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  // Past these ends the result is infinity or zero; the ends themselves already give that.
  const Reduced<V> reduced = reduce_by_ln2(Pair<V>{clamp(x, -104.0f, 89.0f), V(0.0f)});
  const V rest = reduced.rest + reduced.rest_low;
  const V factor = V(1.0f) + (rest + exp_tail(rest));
  return times(factor, reduced.scale);
}

// The same bits in fewer steps where the result is neither infinite nor subnormal: one scale holds
// its power of two. REQUIRES: -87 <= x <= 88, or x is NaN.
template <class V>
[[gnu::always_inline]] inline V exp_within_range(V x) {
  constexpr float kRounder = 0x1.8p23f;  // As in reduce_by_ln2().
  const V shifted = fma(x, V(0x1.715476p0f), V(kRounder));
  const V count = shifted - V(kRounder);
  const V rest = fma(count, V(-0x1.62e43p-1f), x) + count * V(0x1.05c61p-29f);
  const V factor = V(1.0f) + (rest + exp_tail(rest));
  const IntOf<V> exponent = bits_of(shifted) - IntOf<V>(bits_of(kRounder) - 127);
  return factor * from_bits(exponent << 23);
}

// x / (1 + e^-w), where w has the sign of `side`. REQUIRES: |w| <= 126. Computed from e^-|w|, which
// cannot overflow, and scaled last, so that far left a large x meets no subnormal factor.
template <class V>
[[gnu::always_inline]] inline V times_sigmoid(V x, Pair<V> w, V side) {
  const auto is_left = side < V(0.0f);
  const V zero = V(0.0f);
  const Pair<V> minus{select(is_left, w.high, zero - w.high), select(is_left, w.low, zero - w.low)};
  const Power<V> power = exp_of_pair(minus);
  const V t = times(power.factor.high, power.scale);
  const V t_low = times(power.factor.low, power.scale);
  Pair<V> divisor = add_smaller(V(1.0f), t);
  divisor.low = divisor.low + t_low;
  Pair<V> product = multiply_exact(x, power.factor.high);
  product.low = fma(x, power.factor.low, product.low);
  const Pair<V> dividend{select(is_left, product.high, x), select(is_left, product.low, zero)};
  const Pair<V> quotient = divide(dividend, divisor);
  const V one = V(1.0f);
  const Scale<V> left_only{.count = select(is_left, power.scale.count, zero),
                           .scale_1 = select(is_left, power.scale.scale_1, one),
                           .scale_2 = select(is_left, power.scale.scale_2, one)};
  return times(quotient.high + quotient.low, left_only);
}

}  // namespace cairn::elementary
