// The vectors that the matrix kernels are written in, for AVX-512 with VNNI. Weight bytes go into
// the dot product as unsigned numbers: what was added to make them so is taken off by the start
// value of the sum.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "backends/cpu/product/product.h"

namespace cairn::avx512 {
namespace {

struct MatrixVectors {
  static constexpr int kLanes = 16;            // Outputs of a vector.
  static constexpr bool kSignedBytes = false;  // Signed planes are made unsigned by adding 128.
  static constexpr int kTileRows = 6;          // With 2 vectors: 24 accumulators of 32 registers.
  static constexpr int kTileVectors = 2;
  static constexpr int kBlockRows = 8;  // Of rows that multiply packed weights: one vector.
  static constexpr int kChunkRows = cpu::kChunkRows, kPanels = cpu::kPanels;  // At a time.
  static constexpr int kDirectRows = 48;  // More of them multiply panels.
  static constexpr int kRowGroups = 4;    // Groups that a row alone multiplies side by side.

  using Bytes = __m512i;
  using Ints = __m512i;
  using Floats = __m512;

  static Bytes load(const uint8_t* at) { return _mm512_loadu_si512(at); }
  static void store(uint8_t* at, Bytes bytes) { _mm512_storeu_si512(at, bytes); }
  static Bytes mask(Bytes bytes, uint8_t bits) {
    return _mm512_and_si512(bytes, _mm512_set1_epi8(char(bits)));
  }
  static Bytes either(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
  static Bytes flip_sign(Bytes bytes) {
    return _mm512_xor_si512(bytes, _mm512_set1_epi8(char(0x80)));
  }
  // Left for positive counts, right for negative ones; bits cross bytes, to be masked away.
  template <int kCount>
  static Bytes shift(Bytes bytes) {
    if constexpr (kCount > 0) return _mm512_slli_epi32(bytes, kCount);
    if constexpr (kCount < 0) return _mm512_srli_epi32(bytes, -kCount);
    return bytes;
  }
  static Bytes load_table(const int8_t* table) {
    __m128i levels;
    std::memcpy(&levels, table, 16);
    return flip_sign(_mm512_broadcast_i32x4(levels));
  }
  static Bytes look_up(Bytes table, Bytes codes) { return _mm512_shuffle_epi8(table, codes); }

  static Floats zero() { return _mm512_setzero_ps(); }
  static Floats load(const float* at) { return _mm512_loadu_ps(at); }
  static void store(float* at, Floats values) { _mm512_storeu_ps(at, values); }
  static Floats broadcast(float value) { return _mm512_set1_ps(value); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  // *a * b + c: the instruction reads the number itself, as Dot does.
  static Floats fma_of(const float* a, Floats b, Floats c) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
  }
  static Floats to_floats(Ints ints) { return _mm512_cvtepi32_ps(ints); }
  static Floats load_f16(const uint8_t* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  static Floats load_bf16(const uint8_t* at) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
  static Floats load_f32(const uint8_t* at) { return _mm512_loadu_ps(at); }
  static Floats load_i8(const uint8_t* at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  }
  // Into the second cache, which has room for more lines under way than the first. Inlined by
  // order: to the compiler a function that only prefetches has no effect, and its call can go.
  [[gnu::always_inline]] static void prefetch(const uint8_t* at) {
    _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
  }

  // The weights of one vector, ready to multiply any number of rows.
  template <cpu::Plane>
  using Weights = Bytes;

  // An exact sum of vectors times activations, which kVectors vectors of weights multiply. Of one
  // vector the instruction reads them itself: a broadcast of its own would take an arithmetic unit
  // of some processors (Zen 4). Several share a broadcast, which takes fewer loads.
  template <cpu::Plane, int, int kVectors>
  struct Dot {
    Ints sum;
    void start(int32_t value) { sum = _mm512_set1_epi32(value); }
    template <int>
    void add(Bytes weights, const int8_t* x) {
      if constexpr (kVectors == 1) {
        asm("vpdpbusd %2%{1to16%}, %1, %0"
            : "+v"(sum)
            : "v"(weights), "m"(*reinterpret_cast<const int8_t(*)[4]>(x)));
      } else {
        int32_t four;
        std::memcpy(&four, x, 4);
        sum = _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(four));
      }
    }
    Ints total() const { return sum; }
  };
};

}  // namespace
}  // namespace cairn::avx512
