// Sixteen floats side by side: the vector that the kernel templates are written in, for AVX-512. It
// has what base/lanes.h lists, and loads and stores, under the same names as in lanes_avx2.h. Every
// function is one or a few instructions and always inlined, so that a file for this instruction set
// emits no symbol that the linker could give to others.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/attention/kv_bits.h"

#define CAIRN_LANES [[gnu::always_inline]] inline

namespace cairn::avx512 {

CAIRN_LANES __mmask16 first_mask(int32_t count) {
  return __mmask16((1u << count) - 1u);
}

struct Ints {
  Ints() = default;
  CAIRN_LANES explicit Ints(int32_t value) : v(_mm512_set1_epi32(value)) {}
  CAIRN_LANES explicit Ints(__m512i lanes) : v(lanes) {}
  CAIRN_LANES static Ints load(const int32_t* p) { return Ints(_mm512_loadu_si512(p)); }
  __m512i v;
};

struct Lanes {
  static constexpr int32_t kCount = 16;
  static constexpr int32_t kRegisters = 32;  // So many of these vectors.
  using Int = Ints;

  Lanes() = default;
  static void clear_upper_halves() { _mm256_zeroupper(); }
  CAIRN_LANES explicit Lanes(float value) : v(_mm512_set1_ps(value)) {}
  CAIRN_LANES Lanes(__m512 lanes) : v(lanes) {}
  CAIRN_LANES static Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
  // The first `count` floats, 1..15; the other lanes are zeros and their memory is not touched.
  CAIRN_LANES static Lanes load_first(const float* p, int32_t count) {
    return {_mm512_maskz_loadu_ps(first_mask(count), p)};
  }
  // p[0], p[stride], p[2 * stride], …: the first `count`, 1..16.
  CAIRN_LANES static Lanes load_strided(const float* p, int32_t stride, int32_t count) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i index = _mm512_mullo_epi32(lane, _mm512_set1_epi32(stride));
    const __mmask16 mask = first_mask(count);
    return {_mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, index, p, 4)};
  }

  // Keys and values as they lie in pages, widened exactly.
  CAIRN_LANES static Lanes load(const F32Bits* p) {
    return load(reinterpret_cast<const float*>(p));
  }
  CAIRN_LANES static Lanes load(const F16Bits* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  CAIRN_LANES static Lanes load(const BF16Bits* p) {
    return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  CAIRN_LANES static Lanes load_first(const F32Bits* p, int32_t count) {
    return load_first(reinterpret_cast<const float*>(p), count);
  }
  CAIRN_LANES static Lanes load_first(const F16Bits* p, int32_t count) {
    return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_mask(count), p))};
  }
  CAIRN_LANES static Lanes load_first(const BF16Bits* p, int32_t count) {
    return widen_bf16(_mm256_maskz_loadu_epi16(first_mask(count), p));
  }
  // One number in all lanes.
  CAIRN_LANES static Lanes broadcast(const F16Bits* p) {
    return {_mm512_cvtph_ps(_mm256_set1_epi16(int16_t(p->bits)))};
  }
  // Codes without their scale. Of Q4Bits: those of one dim of sixteen tokens, or of sixteen dims of
  // one token (from eight bytes).
  CAIRN_LANES static Lanes load(const Q8Bits* p) {
    return from_codes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  CAIRN_LANES static Lanes load_first(const Q8Bits* p, int32_t count) {
    return from_codes(_mm_maskz_loadu_epi8(first_mask(count), p));
  }
  CAIRN_LANES static Lanes load_lower(const Q4Bits* p) {
    return from_codes(lower(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  CAIRN_LANES static Lanes load_upper(const Q4Bits* p) {
    return from_codes(upper(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  CAIRN_LANES static Lanes load(const Q4Bits* p) {
    return from_pairs(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  CAIRN_LANES static Lanes load_first(const Q4Bits* p, int32_t count) {
    return from_pairs(_mm_maskz_loadu_epi8(first_mask((count + 1) / 2), p));
  }
  CAIRN_LANES static __m128i lower(__m128i bytes) {
    return _mm_sub_epi8(_mm_and_si128(bytes, _mm_set1_epi8(15)), _mm_set1_epi8(8));
  }
  CAIRN_LANES static __m128i upper(__m128i bytes) { return lower(_mm_srli_epi16(bytes, 4)); }
  CAIRN_LANES static Lanes from_pairs(__m128i bytes) {
    return from_codes(_mm_unpacklo_epi8(lower(bytes), upper(bytes)));
  }
  CAIRN_LANES static Lanes from_codes(__m128i codes) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes))};
  }
  CAIRN_LANES static Lanes widen_bf16(__m256i bits) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }

  __m512 v;
};

CAIRN_LANES void store(float* p, Lanes a) {
  _mm512_storeu_ps(p, a.v);
}
// Past the caches: p is aligned to the vector. Other threads see it after drain_streams().
CAIRN_LANES void stream(float* p, Lanes a) {
  _mm512_stream_ps(p, a.v);
}
CAIRN_LANES void drain_streams(Lanes) {
  _mm_sfence();
}
CAIRN_LANES void store_first(float* p, Lanes a, int32_t count) {
  _mm512_mask_storeu_ps(p, first_mask(count), a.v);
}

CAIRN_LANES Lanes operator+(Lanes a, Lanes b) {
  return _mm512_add_ps(a.v, b.v);
}
CAIRN_LANES Lanes operator-(Lanes a, Lanes b) {
  return _mm512_sub_ps(a.v, b.v);
}
CAIRN_LANES Lanes operator*(Lanes a, Lanes b) {
  return _mm512_mul_ps(a.v, b.v);
}
CAIRN_LANES Lanes operator/(Lanes a, Lanes b) {
  return _mm512_div_ps(a.v, b.v);
}
// *a * b + c: the instruction reads the number itself, where a broadcast of its own would take an
// arithmetic unit of some processors (Zen 4).
CAIRN_LANES Lanes fma_of(const float* a, Lanes b, Lanes c) {
  asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c.v) : "v"(b.v), "m"(*a));
  return c;
}
CAIRN_LANES Lanes fma(Lanes a, Lanes b, Lanes c) {
  return _mm512_fmadd_ps(a.v, b.v, c.v);
}
// a * b - c, rounded once.
CAIRN_LANES Lanes fms(Lanes a, Lanes b, Lanes c) {
  return _mm512_fmsub_ps(a.v, b.v, c.v);
}
// a > b ? a : b, so that a NaN in `a` gives b.
CAIRN_LANES Lanes larger(Lanes a, Lanes b) {
  return _mm512_max_ps(a.v, b.v);
}
// As base/lanes.h has it: the second operand is what a NaN leaves.
CAIRN_LANES Lanes clamp(Lanes a, float low, float high) {
  return _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), a.v));
}
// a * 2^count, rounded once.
CAIRN_LANES Lanes times_power_of_two(Lanes a, Lanes count) {
  return _mm512_scalef_ps(a.v, count.v);
}

struct Mask {
  __mmask16 lanes;
};
CAIRN_LANES Mask operator<(Lanes a, Lanes b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
CAIRN_LANES Lanes select(Mask mask, Lanes a, Lanes b) {
  return _mm512_mask_blend_ps(mask.lanes, b.v, a.v);
}
CAIRN_LANES Ints bits_of(Lanes a) {
  return Ints(_mm512_castps_si512(a.v));
}
CAIRN_LANES Lanes from_bits(Ints a) {
  return _mm512_castsi512_ps(a.v);
}
CAIRN_LANES Ints operator+(Ints a, Ints b) {
  return Ints(_mm512_add_epi32(a.v, b.v));
}
CAIRN_LANES Ints operator-(Ints a, Ints b) {
  return Ints(_mm512_sub_epi32(a.v, b.v));
}
CAIRN_LANES Ints operator&(Ints a, Ints b) {
  return Ints(_mm512_and_si512(a.v, b.v));
}
CAIRN_LANES Ints operator|(Ints a, Ints b) {
  return Ints(_mm512_or_si512(a.v, b.v));
}
CAIRN_LANES Ints operator<<(Ints a, int32_t k) {
  return Ints(_mm512_slli_epi32(a.v, uint32_t(k)));
}
CAIRN_LANES Ints operator>>(Ints a, int32_t k) {
  return Ints(_mm512_srai_epi32(a.v, uint32_t(k)));
}
CAIRN_LANES void store(int32_t* p, Ints a) {
  _mm512_storeu_si512(p, a.v);
}

// For choosing: the larger of each lane, the largest of all, the first lane that is `value` (or
// the number of lanes), one lane changed, and all lanes from `count` on changed.
CAIRN_LANES Ints larger(Ints a, Ints b) {
  return Ints(_mm512_max_epi32(a.v, b.v));
}
CAIRN_LANES int32_t largest(Ints a) {
  const __m256i upper = _mm512_extracti64x4_epi64(a.v, 1);
  const __m256i eight = _mm256_max_epi32(_mm512_castsi512_si256(a.v), upper);
  const __m128i four =
      _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));  // Lanes 2 3 0 1.
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
CAIRN_LANES int32_t first_equal(Ints a, int32_t value) {
  const uint32_t lanes = _mm512_cmpeq_epi32_mask(a.v, _mm512_set1_epi32(value));
  return __builtin_ctz(lanes | 1u << 16);
}
CAIRN_LANES Ints with_lane(Ints a, int32_t lane, int32_t value) {
  return Ints(_mm512_mask_set1_epi32(a.v, __mmask16(1u << lane), value));
}
CAIRN_LANES Ints with_rest(Ints a, int32_t count, int32_t value) {
  return Ints(_mm512_mask_mov_epi32(_mm512_set1_epi32(value), first_mask(count), a.v));
}

// Sixteen partial sums: element i mod 16 of a row stands in lane i mod 16.
struct Partials {
  Lanes lanes;
};
CAIRN_LANES Partials zero_partials(Lanes) {
  return {{_mm512_setzero_ps()}};
}
CAIRN_LANES void add_values(Partials& sums, const float* x, int32_t count) {
  sums.lanes = sums.lanes + (count < 16 ? Lanes::load_first(x, count) : Lanes::load(x));
}
CAIRN_LANES void add_squares(Partials& sums, const float* x, int32_t count) {
  const Lanes a = count < 16 ? Lanes::load_first(x, count) : Lanes::load(x);
  sums.lanes = fma(a, a, sums.lanes);
}
CAIRN_LANES float add_tree(const Partials& sums) {
  const __m512 all = sums.lanes.v;
  const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(all), 1));
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), upper);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// The largest lane; `start` where all lanes are smaller or NaN.
CAIRN_LANES float largest(Lanes a, float start) {
  const __m512 all = _mm512_max_ps(a.v, _mm512_set1_ps(start));  // A NaN leaves `start`.
  const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(all), 1));
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(all), upper);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// Splits pairs: the even elements of the 32 floats (a, b) and the odd ones; and the way back.
struct EvenOdd {
  Lanes even, odd;
};
CAIRN_LANES EvenOdd split_pairs(Lanes a, Lanes b) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  return {{_mm512_permutex2var_ps(a.v, even, b.v)}, {_mm512_permutex2var_ps(a.v, odd, b.v)}};
}
CAIRN_LANES EvenOdd join_pairs(Lanes even, Lanes odd) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  return {{_mm512_permutex2var_ps(even.v, low, odd.v)},
          {_mm512_permutex2var_ps(even.v, high, odd.v)}};
}

// Rounded to nearest, ties to even: what base/half.h does.
CAIRN_LANES void store(F32Bits* p, Lanes a) {
  store(reinterpret_cast<float*>(p), a);
}
CAIRN_LANES void store(F16Bits* p, Lanes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
CAIRN_LANES void store(BF16Bits* p, Lanes a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i upper = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(
      _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet)));
}

}  // namespace cairn::avx512

#undef CAIRN_LANES
