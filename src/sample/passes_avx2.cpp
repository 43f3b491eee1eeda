// The loops with AVX2 and FMA: eight lanes a register. Everything that this file defines for others
// lives in the namespace avx2. Thread rule: pure.
#include <immintrin.h>

#include "sample/pass_loops.h"

namespace cairn::sample::avx2 {

namespace {

struct Eight {
  struct Int {
    __m256i v;
    Int() = default;
    explicit Int(__m256i x) : v(x) {}
    explicit Int(int32_t x) : v(_mm256_set1_epi32(x)) {}
    friend Int operator+(Int a, Int b) { return Int(_mm256_add_epi32(a.v, b.v)); }
    friend Int operator-(Int a, Int b) { return Int(_mm256_sub_epi32(a.v, b.v)); }
    friend Int operator&(Int a, Int b) { return Int(_mm256_and_si256(a.v, b.v)); }
    friend Int operator<<(Int a, int k) { return Int(_mm256_slli_epi32(a.v, k)); }
    friend Int operator>>(Int a, int k) { return Int(_mm256_srai_epi32(a.v, k)); }
  };
  struct Mask {
    __m256 v;
  };
  static constexpr size_t kWidth = 8;

  __m256 v;
  Eight() = default;
  explicit Eight(__m256 x) : v(x) {}
  explicit Eight(float x) : v(_mm256_set1_ps(x)) {}
  static Eight load(const float* values) { return Eight(_mm256_loadu_ps(values)); }
  void store(float* out) const { _mm256_storeu_ps(out, v); }
  static uint32_t above_bits(const float* values, float floor) {
    const auto above = [floor](const float* eight) {
      const __m256 mask = _mm256_cmp_ps(_mm256_loadu_ps(eight), _mm256_set1_ps(floor), _CMP_GT_OQ);
      return uint32_t(_mm256_movemask_ps(mask));
    };
    return above(values) | above(values + 8) << 8;
  }

  friend Eight operator+(Eight a, Eight b) { return Eight(_mm256_add_ps(a.v, b.v)); }
  friend Eight operator-(Eight a, Eight b) { return Eight(_mm256_sub_ps(a.v, b.v)); }
  friend Eight operator*(Eight a, Eight b) { return Eight(_mm256_mul_ps(a.v, b.v)); }
  friend Eight operator/(Eight a, Eight b) { return Eight(_mm256_div_ps(a.v, b.v)); }
  friend Mask operator<(Eight a, Eight b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
  friend Eight fma(Eight a, Eight b, Eight c) { return Eight(_mm256_fmadd_ps(a.v, b.v, c.v)); }
  friend Eight select(Mask mask, Eight a, Eight b) {
    return Eight(_mm256_blendv_ps(b.v, a.v, mask.v));
  }
  friend Int bits_of(Eight x) { return Int(_mm256_castps_si256(x.v)); }
  friend Eight from_bits(Int x) { return Eight(_mm256_castsi256_ps(x.v)); }
};

float largest(const float* values, size_t count) {
  return loops::largest<Eight>(values, count);
}

size_t find_above(const float* values, size_t count, float floor, uint32_t* indices) {
  return loops::find_above<Eight>(values, count, floor, indices);
}

ExpSums exp_sums(const float* values, size_t count, float reference) {
  return loops::exp_sums<Eight>(values, count, reference);
}

ValueSums value_sums(const float* values, size_t count, float reference) {
  return loops::value_sums<Eight>(values, count, reference);
}

void divide(const float* values, size_t count, float divisor, float* out) {
  loops::divide<Eight>(values, count, divisor, out);
}

void nearness(const float* values, size_t count, float center, float* out) {
  loops::nearness<Eight>(values, count, center, out);
}

void keep_allowed(const float* values, size_t count, const uint64_t* words, float* out) {
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256 none = _mm256_set1_ps(loops::kNone);
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i byte = _mm256_set1_epi32(int32_t(words[i / 64] >> (i % 64) & 255));
    const __m256i is_set = _mm256_cmpeq_epi32(_mm256_and_si256(byte, bits), bits);
    const __m256 kept =
        _mm256_blendv_ps(none, _mm256_loadu_ps(values + i), _mm256_castsi256_ps(is_set));
    _mm256_storeu_ps(out + i, kept);
  }
  loops::keep_allowed(values, i, count, words, out);
}

// base/philox.h for four counters: each in the lower half of 64 bits, where products are whole.
// What is in the upper halves in between is never multiplied.
void noise_words(const NoiseKey& key, uint32_t first, size_t count, uint32_t* words) {
  const __m256i multiplier0 = _mm256_set1_epi64x(0xd2511f53);
  const __m256i multiplier1 = _mm256_set1_epi64x(0xcd9e8d57);
  for (size_t i = 0; i < count; i += 4) {
    const long long token = first + uint32_t(i);
    __m256i c0 = _mm256_set_epi64x(token + 3, token + 2, token + 1, token);
    __m256i c1 = _mm256_set1_epi64x(key.position);
    __m256i c2 = _mm256_set1_epi64x(key.stream);
    __m256i c3 = _mm256_setzero_si256();
    uint32_t key0 = uint32_t(key.seed), key1 = uint32_t(key.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m256i product0 = _mm256_mul_epu32(multiplier0, c0);
      const __m256i product1 = _mm256_mul_epu32(multiplier1, c2);
      const __m256i high0 = _mm256_srli_epi64(product0, 32);
      const __m256i high1 = _mm256_srli_epi64(product1, 32);
      c0 = _mm256_xor_si256(_mm256_xor_si256(high1, c1), _mm256_set1_epi64x(key0));
      c2 = _mm256_xor_si256(_mm256_xor_si256(high0, c3), _mm256_set1_epi64x(key1));
      c1 = product1;
      c3 = product0;
      key0 += 0x9e3779b9u;
      key1 += 0xbb67ae85u;
    }
    alignas(32) uint64_t counters[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(counters), c0);
    for (size_t j = 0; j < 4 && i + j < count; ++j) words[i + j] = uint32_t(counters[j]);
  }
}

}  // namespace

const Passes& passes_avx2() {
  static const Passes all{largest, find_above,   exp_sums, value_sums,
                          divide,  keep_allowed, nearness, noise_words};
  return all;
}

}  // namespace cairn::sample::avx2
