// The vectors that the matrix kernels are written in, for AVX2 with the byte dot product of VNNI in
// 256 bits. As with AVX-512, weight bytes go in as unsigned numbers: what was added to make them so
// is taken off by the start value of the sum. Processors have the instruction in two encodings,
// AVX-VNNI's and AVX-512VL's; the flags of the file that includes this one choose.
#pragma once

#include "backends/cpu/product/matrix_vectors_avx2.h"

namespace cairn::avxvnni {
namespace {

inline __m256i dot_bytes(__m256i sum, __m256i weights, __m256i activations) {
#if defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(sum, weights, activations);
#else
  return _mm256_dpbusd_epi32(sum, weights, activations);
#endif
}

struct MatrixVectors : avx2::MatrixVectors {
  static constexpr bool kSignedBytes = false;  // Signed planes are made unsigned by adding 128.

  static Bytes load_table(const int8_t* table) {
    return flip_sign(avx2::MatrixVectors::load_table(table));
  }

  // The weights of one vector, ready to multiply any number of rows.
  template <cpu::Plane>
  using Weights = Bytes;

  // An exact sum of vectors times activations.
  template <cpu::Plane, int, int>
  struct Dot {
    Ints sum;
    void start(int32_t value) { sum = _mm256_set1_epi32(value); }
    template <int>
    void add(Bytes weights, const int8_t* x) {
      int32_t four;
      std::memcpy(&four, x, 4);
      sum = dot_bytes(sum, weights, _mm256_set1_epi32(four));
    }
    Ints total() const { return sum; }
  };
};

}  // namespace
}  // namespace cairn::avxvnni
