// Eight floats side by side: the vector that the kernel templates are written in, for AVX2 with FMA
// and F16C: what base/lanes.h lists, under the same names as in lanes_avx512.h, and loads and
// stores. Every function is one or a few instructions and always inlined, so that a file for this
// instruction set emits no symbol that the linker could give to others.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/attention/kv_bits.h"

#define CAIRN_LANES [[gnu::always_inline]] inline

namespace cairn::avx2 {

CAIRN_LANES __m256i first_mask(int32_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

struct Ints {
  Ints() = default;
  CAIRN_LANES explicit Ints(int32_t value) : v(_mm256_set1_epi32(value)) {}
  CAIRN_LANES explicit Ints(__m256i lanes) : v(lanes) {}
  CAIRN_LANES static Ints load(const int32_t* p) {
    return Ints(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  __m256i v;
};

struct Lanes {
  static constexpr int32_t kCount = 8;
  static constexpr int32_t kRegisters = 16;  // So many of these vectors.
  using Int = Ints;

  Lanes() = default;
  static void clear_upper_halves() { _mm256_zeroupper(); }
  CAIRN_LANES explicit Lanes(float value) : v(_mm256_set1_ps(value)) {}
  CAIRN_LANES Lanes(__m256 lanes) : v(lanes) {}
  CAIRN_LANES static Lanes load(const float* p) { return {_mm256_loadu_ps(p)}; }
  // The first `count` floats, 1..7; the other lanes are zeros and their memory is not touched.
  CAIRN_LANES static Lanes load_first(const float* p, int32_t count) {
    return {_mm256_maskload_ps(p, first_mask(count))};
  }
  // p[0], p[stride], p[2 * stride], …: the first `count`, 1..8.
  CAIRN_LANES static Lanes load_strided(const float* p, int32_t stride, int32_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i index = _mm256_mullo_epi32(lane, _mm256_set1_epi32(stride));
    return {_mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, index,
                                     _mm256_castsi256_ps(first_mask(count)), 4)};
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
    return widen(p, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  template <class Bits>
  CAIRN_LANES static Lanes load_first(const Bits* p, int32_t count) {
    uint16_t bits[8] = {};
    for (int32_t i = 0; i < count; ++i) bits[i] = p[i].bits;
    return widen(p, _mm_loadu_si128(reinterpret_cast<const __m128i*>(bits)));
  }
  // One number in all lanes.
  CAIRN_LANES static Lanes broadcast(const F16Bits* p) {
    return {_mm256_cvtph_ps(_mm_set1_epi16(int16_t(p->bits)))};
  }
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
  CAIRN_LANES static __m128i load_bytes(const void* p, int32_t count) {
    int64_t bytes = 0;
    __builtin_memcpy(&bytes, p, size_t(count));
    return _mm_cvtsi64_si128(bytes);
  }
  CAIRN_LANES static __m128i lower(__m128i bytes) {
    return _mm_sub_epi8(_mm_and_si128(bytes, _mm_set1_epi8(15)), _mm_set1_epi8(8));
  }
  CAIRN_LANES static __m128i upper(__m128i bytes) { return lower(_mm_srli_epi16(bytes, 4)); }
  CAIRN_LANES static Lanes from_pairs(__m128i bytes) {
    return from_codes(_mm_unpacklo_epi8(lower(bytes), upper(bytes)));
  }
  CAIRN_LANES static Lanes from_codes(__m128i codes) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes))};
  }
  CAIRN_LANES static Lanes widen(const F16Bits*, __m128i bits) { return {_mm256_cvtph_ps(bits)}; }
  CAIRN_LANES static Lanes widen(const BF16Bits*, __m128i bits) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
  }

  __m256 v;
};

CAIRN_LANES void store(float* p, Lanes a) {
  _mm256_storeu_ps(p, a.v);
}
// Past the caches: p is aligned to the vector. Other threads see it after drain_streams().
CAIRN_LANES void stream(float* p, Lanes a) {
  _mm256_stream_ps(p, a.v);
}
CAIRN_LANES void drain_streams(Lanes) {
  _mm_sfence();
}
CAIRN_LANES void store_first(float* p, Lanes a, int32_t count) {
  _mm256_maskstore_ps(p, first_mask(count), a.v);
}

CAIRN_LANES Lanes operator+(Lanes a, Lanes b) {
  return _mm256_add_ps(a.v, b.v);
}
CAIRN_LANES Lanes operator-(Lanes a, Lanes b) {
  return _mm256_sub_ps(a.v, b.v);
}
CAIRN_LANES Lanes operator*(Lanes a, Lanes b) {
  return _mm256_mul_ps(a.v, b.v);
}
CAIRN_LANES Lanes operator/(Lanes a, Lanes b) {
  return _mm256_div_ps(a.v, b.v);
}
CAIRN_LANES Lanes fma(Lanes a, Lanes b, Lanes c) {
  return _mm256_fmadd_ps(a.v, b.v, c.v);
}
// *a * b + c.
CAIRN_LANES Lanes fma_of(const float* a, Lanes b, Lanes c) {
  return fma(Lanes(*a), b, c);
}
// a * b - c, rounded once.
CAIRN_LANES Lanes fms(Lanes a, Lanes b, Lanes c) {
  return _mm256_fmsub_ps(a.v, b.v, c.v);
}
// a > b ? a : b, so that a NaN in `a` gives b.
CAIRN_LANES Lanes larger(Lanes a, Lanes b) {
  return _mm256_max_ps(a.v, b.v);
}
// As base/lanes.h has it: the second operand is what a NaN leaves.
CAIRN_LANES Lanes clamp(Lanes a, float low, float high) {
  return _mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), a.v));
}

struct Mask {
  __m256 lanes;
};
CAIRN_LANES Mask operator<(Lanes a, Lanes b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)};
}
CAIRN_LANES Lanes select(Mask mask, Lanes a, Lanes b) {
  return _mm256_blendv_ps(b.v, a.v, mask.lanes);
}
CAIRN_LANES Ints bits_of(Lanes a) {
  return Ints(_mm256_castps_si256(a.v));
}
CAIRN_LANES Lanes from_bits(Ints a) {
  return _mm256_castsi256_ps(a.v);
}
CAIRN_LANES Ints operator+(Ints a, Ints b) {
  return Ints(_mm256_add_epi32(a.v, b.v));
}
CAIRN_LANES Ints operator-(Ints a, Ints b) {
  return Ints(_mm256_sub_epi32(a.v, b.v));
}
CAIRN_LANES Ints operator&(Ints a, Ints b) {
  return Ints(_mm256_and_si256(a.v, b.v));
}
CAIRN_LANES Ints operator|(Ints a, Ints b) {
  return Ints(_mm256_or_si256(a.v, b.v));
}
CAIRN_LANES Ints operator<<(Ints a, int32_t k) {
  return Ints(_mm256_slli_epi32(a.v, k));
}
CAIRN_LANES Ints operator>>(Ints a, int32_t k) {
  return Ints(_mm256_srai_epi32(a.v, k));
}
CAIRN_LANES void store(int32_t* p, Ints a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v);
}

// For choosing: the larger of each lane, the largest of all, the first lane that is `value` (or
// the number of lanes), one lane changed, and all lanes from `count` on changed.
CAIRN_LANES Ints larger(Ints a, Ints b) {
  return Ints(_mm256_max_epi32(a.v, b.v));
}
CAIRN_LANES int32_t largest(Ints a) {
  const __m128i upper = _mm256_extracti128_si256(a.v, 1);
  const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(a.v), upper);
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));  // Lanes 2 3 0 1.
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
CAIRN_LANES int32_t first_equal(Ints a, int32_t value) {
  const __m256i equal = _mm256_cmpeq_epi32(a.v, _mm256_set1_epi32(value));
  const uint32_t lanes = uint32_t(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
  return __builtin_ctz(lanes | 1u << 8);
}
CAIRN_LANES Ints with_lane(Ints a, int32_t lane, int32_t value) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i changes = _mm256_cmpeq_epi32(lanes, _mm256_set1_epi32(lane));
  return Ints(_mm256_blendv_epi8(a.v, _mm256_set1_epi32(value), changes));
}
CAIRN_LANES Ints with_rest(Ints a, int32_t count, int32_t value) {
  return Ints(_mm256_blendv_epi8(_mm256_set1_epi32(value), a.v, first_mask(count)));
}

// Sixteen partial sums: element i mod 16 of a row stands in lane i mod 16 of the two vectors.
struct Partials {
  Lanes low, high;
};
CAIRN_LANES Partials zero_partials(Lanes) {
  return {{_mm256_setzero_ps()}, {_mm256_setzero_ps()}};
}
CAIRN_LANES void add_values(Partials& sums, const float* x, int32_t count) {
  sums.low = sums.low + (count < 8 ? Lanes::load_first(x, count) : Lanes::load(x));
  if (count > 8) {
    sums.high = sums.high + (count < 16 ? Lanes::load_first(x + 8, count - 8) : Lanes::load(x + 8));
  }
}
CAIRN_LANES void add_squares(Partials& sums, const float* x, int32_t count) {
  const Lanes a = count < 8 ? Lanes::load_first(x, count) : Lanes::load(x);
  sums.low = fma(a, a, sums.low);
  if (count > 8) {
    const Lanes b = count < 16 ? Lanes::load_first(x + 8, count - 8) : Lanes::load(x + 8);
    sums.high = fma(b, b, sums.high);
  }
}
CAIRN_LANES float add_tree(const Partials& sums) {
  const __m256 eight = _mm256_add_ps(sums.low.v, sums.high.v);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// The largest lane; `start` where all lanes are smaller or NaN.
CAIRN_LANES float largest(Lanes a, float start) {
  const __m256 all = _mm256_max_ps(a.v, _mm256_set1_ps(start));  // A NaN leaves `start`.
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// Splits pairs: the even elements of the 16 floats (a, b) and the odd ones; and the way back.
struct EvenOdd {
  Lanes even, odd;
};
CAIRN_LANES EvenOdd split_pairs(Lanes a, Lanes b) {
  const __m256 low = _mm256_permute2f128_ps(a.v, b.v, 0x20);   // a0..a3 b0..b3
  const __m256 high = _mm256_permute2f128_ps(a.v, b.v, 0x31);  // a4..a7 b4..b7
  return {{_mm256_shuffle_ps(low, high, 0x88)}, {_mm256_shuffle_ps(low, high, 0xdd)}};
}
CAIRN_LANES EvenOdd join_pairs(Lanes even, Lanes odd) {
  const __m256 low = _mm256_unpacklo_ps(even.v, odd.v);   // Pairs 0 1, 4 5.
  const __m256 high = _mm256_unpackhi_ps(even.v, odd.v);  // Pairs 2 3, 6 7.
  return {{_mm256_permute2f128_ps(low, high, 0x20)}, {_mm256_permute2f128_ps(low, high, 0x31)}};
}

// Rounded to nearest, ties to even: what base/half.h does.
CAIRN_LANES void store(F32Bits* p, Lanes a) {
  store(reinterpret_cast<float*>(p), a);
}
CAIRN_LANES void store(F16Bits* p, Lanes a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
CAIRN_LANES void store(BF16Bits* p, Lanes a) {
  const __m256i bits = _mm256_castps_si256(a.v);
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  const __m256i words = _mm256_blendv_epi8(rounded, quiet, nan);
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}

}  // namespace cairn::avx2

#undef CAIRN_LANES
