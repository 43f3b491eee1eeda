// The quantizer of activations in AVX2, for every level that has no wider vectors.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace cairn::avx2 {
namespace {

uint32_t largest_magnitude(const __m256 (&x)[4]) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i bits = _mm256_setzero_si256();
  for (const __m256& part : x) {
    bits = _mm256_max_epu32(bits, _mm256_and_si256(_mm256_castps_si256(part), magnitude));
  }
  __m128i half = _mm_max_epu32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1));
  return uint32_t(_mm_cvtsi128_si32(half));
}

// Two vectors of integers within int8, in order, and their sum.
int32_t store_sixteen(__m256i q0, __m256i q1, int8_t* q) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(q0, q1), 0xd8);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), bytes);
  const __m256i ints = _mm256_add_epi32(q0, q1);
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

// One block of 32, as docs/numerics.md defines it: a block with an infinity or a NaN gets the scale
// NaN and zeros.
void quantize_block(const float* at, int8_t* q, float* scale, int32_t* sums) {
  __m256 x[4];
  for (int i = 0; i < 4; ++i) x[i] = _mm256_loadu_ps(at + 8 * i);
  const uint32_t amax_bits = largest_magnitude(x);
  float amax;
  std::memcpy(&amax, &amax_bits, 4);
  const float s = amax / 127.0f;
  __m256i rounded[4];
  for (__m256i& part : rounded) part = _mm256_setzero_si256();
  if (amax_bits >= 0x7f800000u) {
    const uint32_t nan_bits = 0x7fc00000u;
    std::memcpy(scale, &nan_bits, 4);
  } else {
    *scale = s;
    for (int i = 0; s != 0 && i < 4; ++i) {
      const __m256 y = _mm256_div_ps(x[i], _mm256_set1_ps(s));
      const __m256 kept =
          _mm256_max_ps(_mm256_min_ps(y, _mm256_set1_ps(127.0f)), _mm256_set1_ps(-127.0f));
      rounded[i] = _mm256_cvtps_epi32(kept);
    }
  }
  sums[0] = store_sixteen(rounded[0], rounded[1], q);
  sums[1] = store_sixteen(rounded[2], rounded[3], q + 16);
}

void quantize(const float* x, int64_t count, int8_t* q, float* scales, int32_t* sums) {
  for (int64_t first = 0; first < count; first += 32) {
    quantize_block(x + first, q + first, scales + first / 32, sums + first / 16);
  }
}

}  // namespace
}  // namespace cairn::avx2
