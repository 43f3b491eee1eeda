// The quantizer of activations in AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace cairn::avx512 {
namespace {

// One block of 32, as docs/numerics.md defines it: a block with an infinity or a NaN gets the scale
// NaN and zeros.
void quantize_block(const float* x, int8_t* q, float* scale, int32_t* sums) {
  const __m512 x0 = _mm512_loadu_ps(x);
  const __m512 x1 = _mm512_loadu_ps(x + 16);
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  const __m512i bits = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(x0), magnitude),
                                        _mm512_and_si512(_mm512_castps_si512(x1), magnitude));
  const uint32_t amax_bits = _mm512_reduce_max_epu32(bits);
  float amax;
  std::memcpy(&amax, &amax_bits, 4);
  const float s = amax / 127.0f;
  __m512i q0 = _mm512_setzero_si512(), q1 = _mm512_setzero_si512();
  if (amax_bits >= 0x7f800000u) {
    const uint32_t nan_bits = 0x7fc00000u;
    std::memcpy(scale, &nan_bits, 4);
  } else {
    *scale = s;
    if (s != 0) {
      const __m512 divisor = _mm512_set1_ps(s);
      const __m512 high = _mm512_set1_ps(127.0f), low = _mm512_set1_ps(-127.0f);
      const __m512 y0 = _mm512_max_ps(_mm512_min_ps(_mm512_div_ps(x0, divisor), high), low);
      const __m512 y1 = _mm512_max_ps(_mm512_min_ps(_mm512_div_ps(x1, divisor), high), low);
      q0 = _mm512_cvt_roundps_epi32(y0, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      q1 = _mm512_cvt_roundps_epi32(y1, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtepi32_epi8(q0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16), _mm512_cvtepi32_epi8(q1));
  sums[0] = _mm512_reduce_add_epi32(q0);
  sums[1] = _mm512_reduce_add_epi32(q1);
}

void quantize(const float* x, int64_t count, int8_t* q, float* scales, int32_t* sums) {
  for (int64_t first = 0; first < count; first += 32) {
    quantize_block(x + first, q + first, scales + first / 32, sums + first / 16);
  }
}

}  // namespace
}  // namespace cairn::avx512
