// The vectors that the matrix kernels are written in, for AVX2 with FMA and F16C. The byte product
// (maddubs) adds two products in 16 bits with saturation, so how many of them may be added before
// they are widened depends on how large the weights of a plane can be.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "backends/cpu/product/product.h"

namespace cairn::avx2 {
namespace {

struct MatrixVectors {
  static constexpr int kLanes = 8;            // Outputs of a vector.
  static constexpr bool kSignedBytes = true;  // Signed planes multiply as they are.
  // 8 integer and 8 f32 sums are more than the registers hold beside their operands, but half as
  // many broadcasts for each product are worth it.
  static constexpr int kTileRows = 4;
  static constexpr int kTileVectors = 2;
  static constexpr int kBlockRows = 4;
  static constexpr int kChunkRows = cpu::kChunkRows, kPanels = cpu::kPanels;  // At a time.
  static constexpr int kDirectRows = 12;  // More of them multiply panels.
  static constexpr int kRowGroups = 1;    // Groups that a row alone multiplies side by side.

  using Bytes = __m256i;
  using Ints = __m256i;
  using Floats = __m256;

  static Bytes load(const uint8_t* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  static void store(uint8_t* at, Bytes bytes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), bytes);
  }
  static Bytes mask(Bytes bytes, uint8_t bits) {
    return _mm256_and_si256(bytes, _mm256_set1_epi8(char(bits)));
  }
  static Bytes either(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
  static Bytes flip_sign(Bytes bytes) {
    return _mm256_xor_si256(bytes, _mm256_set1_epi8(char(0x80)));
  }
  // Left for positive counts, right for negative ones; bits cross bytes, to be masked away.
  template <int kCount>
  static Bytes shift(Bytes bytes) {
    if constexpr (kCount > 0) return _mm256_slli_epi32(bytes, kCount);
    if constexpr (kCount < 0) return _mm256_srli_epi32(bytes, -kCount);
    return bytes;
  }
  static Bytes load_table(const int8_t* table) {
    __m128i levels;
    std::memcpy(&levels, table, 16);
    return _mm256_broadcastsi128_si256(levels);
  }
  static Bytes look_up(Bytes table, Bytes codes) { return _mm256_shuffle_epi8(table, codes); }

  static Floats zero() { return _mm256_setzero_ps(); }
  static Floats load(const float* at) { return _mm256_loadu_ps(at); }
  static void store(float* at, Floats values) { _mm256_storeu_ps(at, values); }
  static Floats broadcast(float value) { return _mm256_set1_ps(value); }
  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  // *a * b + c.
  static Floats fma_of(const float* a, Floats b, Floats c) { return fma(broadcast(*a), b, c); }
  static Floats to_floats(Ints ints) { return _mm256_cvtepi32_ps(ints); }
  static Floats load_f16(const uint8_t* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static Floats load_bf16(const uint8_t* at) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static Floats load_f32(const uint8_t* at) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  }
  static Floats load_i8(const uint8_t* at) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  }
  // Into the second cache, which has room for more lines under way than the first. Inlined by
  // order: to the compiler a function that only prefetches has no effect, and its call can go.
  [[gnu::always_inline]] static void prefetch(const uint8_t* at) {
    _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
  }

  static constexpr bool is_signed(cpu::Plane plane) {
    return plane == cpu::Plane::table || plane == cpu::Plane::bytes;
  }

  // The weights of one vector, ready to multiply any number of rows: w * x = |w| * (x * sign(w)).
  // |-128| is 128 as an unsigned byte.
  template <cpu::Plane plane>
  struct Weights {
    Bytes bytes;
    Bytes magnitudes;
    explicit Weights(Bytes weights)
        : bytes(weights), magnitudes(is_signed(plane) ? _mm256_abs_epi8(weights) : weights) {}
  };

  // Byte products that may be added in 16 bits. |x| <= 127, and 32767 / (2 * 127) = 129 is shared
  // by: 8 weights of at most 15 (120), 4 of at most 31 (124), 2 of at most 63 (126), one of 128.
  static constexpr int additions(cpu::Plane plane) {
    return plane == cpu::Plane::nibbles ? 8
           : plane == cpu::Plane::bits5 ? 4
           : plane == cpu::Plane::bits6 ? 2
                                        : 1;
  }

  // An exact sum of kSteps vectors times activations.
  template <cpu::Plane plane, int kSteps, int>
  struct Dot {
    static constexpr int kRun = additions(plane) < kSteps ? additions(plane) : kSteps;
    Ints sum;
    Ints pairs;
    void start(int32_t value) { sum = _mm256_set1_epi32(value); }
    template <int kStep>
    void add(const Weights<plane>& weights, const int8_t* x) {
      int32_t four;
      std::memcpy(&four, x, 4);
      Bytes activations = _mm256_set1_epi32(four);
      if constexpr (is_signed(plane)) activations = _mm256_sign_epi8(activations, weights.bytes);
      const Ints products = _mm256_maddubs_epi16(weights.magnitudes, activations);
      pairs = kStep % kRun == 0 ? products : _mm256_add_epi16(pairs, products);
      if constexpr (kStep % kRun == kRun - 1) {
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
      }
    }
    Ints total() const { return sum; }
  };
};

}  // namespace
}  // namespace cairn::avx2
