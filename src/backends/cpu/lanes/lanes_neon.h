// Eight floats side by side in two registers: the vector that the kernel templates are written in,
// for 64-bit ARM: what base/lanes.h lists, under the same names as in lanes_avx2.h, and loads and
// stores. Eight rather than four, because 32 registers hold sixteen pairs: the templates' blocks,
// which are cut for sixteen vectors of eight, fit. Every function is always inlined, so that a file
// for this instruction set emits no symbol that the linker could give to others.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/attention/kv_bits.h"

#define CAIRN_LANES [[gnu::always_inline]] inline

namespace cairn::neon {

struct Ints {
  Ints() = default;
  CAIRN_LANES explicit Ints(int32_t value) : a(vdupq_n_s32(value)), b(vdupq_n_s32(value)) {}
  CAIRN_LANES Ints(int32x4_t a_, int32x4_t b_) : a(a_), b(b_) {}
  CAIRN_LANES static Ints load(const int32_t* p) { return {vld1q_s32(p), vld1q_s32(p + 4)}; }
  // 0, 1, 2, …
  CAIRN_LANES static Ints lanes() {
    const int32x4_t first = vcombine_s32(vcreate_s32(0x100000000u), vcreate_s32(0x300000002u));
    return {first, vaddq_s32(first, vdupq_n_s32(4))};
  }
  int32x4_t a, b;
};

struct Lanes {
  static constexpr int32_t kCount = 8;
  static constexpr int32_t kRegisters = 16;  // So many of these vectors.
  using Int = Ints;

  Lanes() = default;
  static void clear_upper_halves() {}  // There are none.
  CAIRN_LANES explicit Lanes(float value) : a(vdupq_n_f32(value)), b(vdupq_n_f32(value)) {}
  CAIRN_LANES Lanes(float32x4_t a_, float32x4_t b_) : a(a_), b(b_) {}
  CAIRN_LANES static Lanes load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  // The first `count` floats, 1..7; the other lanes are zeros and their memory is not touched.
  CAIRN_LANES static Lanes load_first(const float* p, int32_t count) {
    float lanes[8] = {};
    for (int32_t i = 0; i < count; ++i) lanes[i] = p[i];
    return load(lanes);
  }
  // p[0], p[stride], p[2 * stride], …: the first `count`, 1..8.
  CAIRN_LANES static Lanes load_strided(const float* p, int32_t stride, int32_t count) {
    float lanes[8] = {};
    for (int32_t i = 0; i < count; ++i) lanes[i] = p[int64_t(i) * stride];
    return load(lanes);
  }

  // Keys and values as they lie in pages, widened exactly.
  CAIRN_LANES static Lanes load(const F32Bits* p) {
    return load(reinterpret_cast<const float*>(p));
  }
  CAIRN_LANES static Lanes load_first(const F32Bits* p, int32_t count) {
    return load_first(reinterpret_cast<const float*>(p), count);
  }
  template <class Bits>
  CAIRN_LANES static Lanes load(const Bits* p) {
    return widen(p, vld1q_u16(reinterpret_cast<const uint16_t*>(p)));
  }
  template <class Bits>
  CAIRN_LANES static Lanes load_first(const Bits* p, int32_t count) {
    uint16_t bits[8] = {};
    for (int32_t i = 0; i < count; ++i) bits[i] = p[i].bits;
    return widen(p, vld1q_u16(bits));
  }
  // One number in all lanes.
  CAIRN_LANES static Lanes broadcast(const F16Bits* p) { return widen(p, vdupq_n_u16(p->bits)); }
  // Codes without their scale. Of Q4Bits: those of one dim of eight tokens, or of eight dims of one
  // token (from four bytes).
  CAIRN_LANES static Lanes load(const Q8Bits* p) { return from_codes(load_bytes(p, 8)); }
  CAIRN_LANES static Lanes load_first(const Q8Bits* p, int32_t count) {
    return from_codes(load_bytes(p, count));
  }
  CAIRN_LANES static Lanes load_lower(const Q4Bits* p) {
    return from_codes(lower(load_bytes(p, 8)));
  }
  CAIRN_LANES static Lanes load_upper(const Q4Bits* p) {
    return from_codes(upper(load_bytes(p, 8)));
  }
  CAIRN_LANES static Lanes load(const Q4Bits* p) { return from_pairs(load_bytes(p, 4)); }
  CAIRN_LANES static Lanes load_first(const Q4Bits* p, int32_t count) {
    return from_pairs(load_bytes(p, (count + 1) / 2));
  }
  CAIRN_LANES static int8x8_t load_bytes(const void* p, int32_t count) {
    uint64_t bytes = 0;
    __builtin_memcpy(&bytes, p, size_t(count));
    return vcreate_s8(bytes);
  }
  CAIRN_LANES static int8x8_t lower(int8x8_t bytes) {
    return vsub_s8(vand_s8(bytes, vdup_n_s8(15)), vdup_n_s8(8));
  }
  CAIRN_LANES static int8x8_t upper(int8x8_t bytes) {
    return vsub_s8(vreinterpret_s8_u8(vshr_n_u8(vreinterpret_u8_s8(bytes), 4)), vdup_n_s8(8));
  }
  CAIRN_LANES static Lanes from_pairs(int8x8_t bytes) {
    return from_codes(vzip1_s8(lower(bytes), upper(bytes)));
  }
  CAIRN_LANES static Lanes from_codes(int8x8_t codes) {
    const int16x8_t words = vmovl_s8(codes);
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))), vcvtq_f32_s32(vmovl_high_s16(words))};
  }
  CAIRN_LANES static Lanes widen(const F16Bits*, uint16x8_t bits) {
    const float16x8_t halves = vreinterpretq_f16_u16(bits);
    return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
  }
  CAIRN_LANES static Lanes widen(const BF16Bits*, uint16x8_t bits) {
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(bits), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(bits, 16))};
  }

  float32x4_t a, b;
};

CAIRN_LANES void store(float* p, Lanes x) {
  vst1q_f32(p, x.a);
  vst1q_f32(p + 4, x.b);
}
CAIRN_LANES void store_first(float* p, Lanes x, int32_t count) {
  float lanes[8];
  store(lanes, x);
  for (int32_t i = 0; i < count; ++i) p[i] = lanes[i];
}

CAIRN_LANES Lanes operator+(Lanes x, Lanes y) {
  return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b)};
}
CAIRN_LANES Lanes operator-(Lanes x, Lanes y) {
  return {vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b)};
}
CAIRN_LANES Lanes operator*(Lanes x, Lanes y) {
  return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)};
}
CAIRN_LANES Lanes operator/(Lanes x, Lanes y) {
  return {vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b)};
}
CAIRN_LANES Lanes fma(Lanes x, Lanes y, Lanes z) {
  return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b)};
}
// *a * b + c.
CAIRN_LANES Lanes fma_of(const float* a, Lanes b, Lanes c) {
  return fma(Lanes(*a), b, c);
}
// x * y - z, rounded once. Negated before the sum: after it, an exact zero would change its sign.
CAIRN_LANES Lanes fms(Lanes x, Lanes y, Lanes z) {
  return fma(x, y, Lanes{vnegq_f32(z.a), vnegq_f32(z.b)});
}

struct Mask {
  uint32x4_t a, b;
};
CAIRN_LANES Mask operator<(Lanes x, Lanes y) {
  return {vcltq_f32(x.a, y.a), vcltq_f32(x.b, y.b)};
}
CAIRN_LANES Lanes select(Mask mask, Lanes x, Lanes y) {
  return {vbslq_f32(mask.a, x.a, y.a), vbslq_f32(mask.b, x.b, y.b)};
}
// x > y ? x : y, so that a NaN in `x` gives y: what this machine's own maximum does not.
CAIRN_LANES Lanes larger(Lanes x, Lanes y) {
  return select(y < x, x, y);
}
CAIRN_LANES Ints bits_of(Lanes x) {
  return {vreinterpretq_s32_f32(x.a), vreinterpretq_s32_f32(x.b)};
}
CAIRN_LANES Lanes from_bits(Ints x) {
  return {vreinterpretq_f32_s32(x.a), vreinterpretq_f32_s32(x.b)};
}
CAIRN_LANES Ints operator+(Ints x, Ints y) {
  return {vaddq_s32(x.a, y.a), vaddq_s32(x.b, y.b)};
}
CAIRN_LANES Ints operator-(Ints x, Ints y) {
  return {vsubq_s32(x.a, y.a), vsubq_s32(x.b, y.b)};
}
CAIRN_LANES Ints operator&(Ints x, Ints y) {
  return {vandq_s32(x.a, y.a), vandq_s32(x.b, y.b)};
}
CAIRN_LANES Ints operator|(Ints x, Ints y) {
  return {vorrq_s32(x.a, y.a), vorrq_s32(x.b, y.b)};
}
CAIRN_LANES Ints operator<<(Ints x, int32_t k) {
  return {vshlq_s32(x.a, vdupq_n_s32(k)), vshlq_s32(x.b, vdupq_n_s32(k))};
}
CAIRN_LANES Ints operator>>(Ints x, int32_t k) {
  return x << -k;  // A shift by a negative count goes to the right and keeps the sign.
}
CAIRN_LANES void store(int32_t* p, Ints x) {
  vst1q_s32(p, x.a);
  vst1q_s32(p + 4, x.b);
}

// For choosing: the larger of each lane, the largest of all, the first lane that is `value` (or
// the number of lanes), one lane changed, and all lanes from `count` on changed.
CAIRN_LANES Ints larger(Ints x, Ints y) {
  return {vmaxq_s32(x.a, y.a), vmaxq_s32(x.b, y.b)};
}
CAIRN_LANES int32_t largest(Ints x) {
  return vmaxvq_s32(vmaxq_s32(x.a, x.b));
}
CAIRN_LANES int32_t first_equal(Ints x, int32_t value) {
  const Ints lanes = Ints::lanes();
  const int32x4_t wanted = vdupq_n_s32(value), none = vdupq_n_s32(8);
  const int32x4_t in_a = vbslq_s32(vceqq_s32(x.a, wanted), lanes.a, none);
  const int32x4_t in_b = vbslq_s32(vceqq_s32(x.b, wanted), lanes.b, none);
  return vminvq_s32(vminq_s32(in_a, in_b));
}
CAIRN_LANES Ints with_lane(Ints x, int32_t lane, int32_t value) {
  const Ints lanes = Ints::lanes();
  const int32x4_t changed = vdupq_n_s32(lane), values = vdupq_n_s32(value);
  return {vbslq_s32(vceqq_s32(lanes.a, changed), values, x.a),
          vbslq_s32(vceqq_s32(lanes.b, changed), values, x.b)};
}
CAIRN_LANES Ints with_rest(Ints x, int32_t count, int32_t value) {
  const Ints lanes = Ints::lanes();
  const int32x4_t end = vdupq_n_s32(count), values = vdupq_n_s32(value);
  return {vbslq_s32(vcltq_s32(lanes.a, end), x.a, values),
          vbslq_s32(vcltq_s32(lanes.b, end), x.b, values)};
}

// Sixteen partial sums: element i mod 16 of a row stands in lane i mod 16 of the two vectors.
struct Partials {
  Lanes low, high;
};
CAIRN_LANES Partials zero_partials(Lanes) {
  return {Lanes(0.0f), Lanes(0.0f)};
}
CAIRN_LANES void add_values(Partials& sums, const float* x, int32_t count) {
  sums.low = sums.low + (count < 8 ? Lanes::load_first(x, count) : Lanes::load(x));
  if (count > 8) {
    sums.high = sums.high + (count < 16 ? Lanes::load_first(x + 8, count - 8) : Lanes::load(x + 8));
  }
}
CAIRN_LANES void add_squares(Partials& sums, const float* x, int32_t count) {
  const Lanes low = count < 8 ? Lanes::load_first(x, count) : Lanes::load(x);
  sums.low = fma(low, low, sums.low);
  if (count > 8) {
    const Lanes high = count < 16 ? Lanes::load_first(x + 8, count - 8) : Lanes::load(x + 8);
    sums.high = fma(high, high, sums.high);
  }
}
CAIRN_LANES float add_tree(const Partials& sums) {
  const Lanes eight = sums.low + sums.high;
  const float32x4_t four = vaddq_f32(eight.a, eight.b);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

// The largest lane; `start` where all lanes are smaller or NaN.
CAIRN_LANES float largest(Lanes x, float start) {
  float lanes[8];
  store(lanes, x);
  for (int32_t i = 0; i < 8; ++i) start = lanes[i] > start ? lanes[i] : start;
  return start;
}

// Splits pairs: the even elements of the 16 floats (x, y) and the odd ones; and the way back.
struct EvenOdd {
  Lanes even, odd;
};
CAIRN_LANES EvenOdd split_pairs(Lanes x, Lanes y) {
  return {{vuzp1q_f32(x.a, x.b), vuzp1q_f32(y.a, y.b)},
          {vuzp2q_f32(x.a, x.b), vuzp2q_f32(y.a, y.b)}};
}
CAIRN_LANES EvenOdd join_pairs(Lanes even, Lanes odd) {
  return {{vzip1q_f32(even.a, odd.a), vzip2q_f32(even.a, odd.a)},
          {vzip1q_f32(even.b, odd.b), vzip2q_f32(even.b, odd.b)}};
}

// Rounded to nearest, ties to even: what base/half.h does.
CAIRN_LANES void store(F32Bits* p, Lanes x) {
  store(reinterpret_cast<float*>(p), x);
}
CAIRN_LANES void store(F16Bits* p, Lanes x) {
  const float16x8_t halves = vcvt_high_f16_f32(vcvt_f16_f32(x.a), x.b);
  vst1q_u16(reinterpret_cast<uint16_t*>(p), vreinterpretq_u16_f16(halves));
}
CAIRN_LANES uint16x4_t round_to_bf16(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t upper = vshrq_n_u32(bits, 16);
  const uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
  const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd), 16);
  const uint32x4_t quiet = vorrq_u32(upper, vdupq_n_u32(0x40));
  return vmovn_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet));
}
CAIRN_LANES void store(BF16Bits* p, Lanes x) {
  vst1q_u16(reinterpret_cast<uint16_t*>(p), vcombine_u16(round_to_bf16(x.a), round_to_bf16(x.b)));
}

}  // namespace cairn::neon

#undef CAIRN_LANES
