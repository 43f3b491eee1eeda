// The kernels for AVX-512 with VNNI.
#include "backends/cpu/product/matrix_vectors_avx512.h"
#include "bench/integer_scales/product.h"

namespace cairn::avx512 {
namespace {

struct IntegerVectors : MatrixVectors {
  static constexpr bool kStarts = true;  // Of byte sums.
  static constexpr int kScaledRows = 5, kScaledVectors = 2;
  static constexpr int kWideRows = 10, kWideVectors = 2;
  static constexpr int kOneVectors = 4;

  static Ints no_words() { return _mm512_setzero_si512(); }
  static Ints load_words(const int32_t* at) { return _mm512_loadu_si512(at); }
  static void store_words(int32_t* at, Ints words) { _mm512_storeu_si512(at, words); }
  static Ints words(const uint8_t* at) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static int32_t word(int32_t value) { return value; }
  static Ints times(Ints words, int32_t factor) {
    return _mm512_mullo_epi32(words, _mm512_set1_epi32(factor));
  }
  // Each number in both halves of its 32 bits; two numbers, times a factor, in these.
  static Ints twice(const uint8_t* at) { return pairs(at, at, 1); }
  static Ints pairs(const uint8_t* low, const uint8_t* high, int32_t factor) {
    const Ints by = _mm512_set1_epi32(factor);
    const Ints a = _mm512_mullo_epi32(words(low), by), b = _mm512_mullo_epi32(words(high), by);
    return _mm512_mask_blend_epi16(0xaaaaaaaau, a, _mm512_slli_epi32(b, 16));
  }
  static Ints add_pairs(Ints sum, Ints pairs, int32_t two) {
    return _mm512_dpwssd_epi32(sum, pairs, _mm512_set1_epi32(two));
  }
  static Ints even_times(Bytes bytes, int bias, Ints scale) {
    const Ints even = _mm512_and_si512(bytes, _mm512_set1_epi16(0xff));
    return _mm512_mullo_epi16(_mm512_sub_epi16(even, _mm512_set1_epi16(int16_t(bias))), scale);
  }
  static Ints odd_times(Bytes bytes, int bias, Ints scale) {
    const Ints odd = _mm512_srli_epi16(bytes, 8);
    return _mm512_mullo_epi16(_mm512_sub_epi16(odd, _mm512_set1_epi16(int16_t(bias))), scale);
  }

  template <cpu::Plane, int kDigits, int kSteps>
  struct ScaledDot {
    Ints high, low;
    void start(int32_t value) {
      low = _mm512_set1_epi32(value);
      if constexpr (kDigits == 2) high = _mm512_setzero_si512();
    }
    template <int>
    void add(Bytes weights, const int8_t* upper, const int8_t* lower) {
      int32_t four;
      std::memcpy(&four, lower, 4);
      low = _mm512_dpbusd_epi32(low, weights, _mm512_set1_epi32(four));
      if constexpr (kDigits == 2) {
        std::memcpy(&four, upper, 4);
        high = _mm512_dpbusd_epi32(high, weights, _mm512_set1_epi32(four));
      }
    }
    template <int kStep>
    static constexpr bool ends_run() {
      return kStep == kSteps - 1;
    }
    Ints add_to(Ints sum, Ints scale) const {
      Ints dot = low;
      if constexpr (kDigits == 2) dot = _mm512_add_epi32(_mm512_slli_epi32(high, 3), low);
      return _mm512_add_epi32(sum, _mm512_mullo_epi32(dot, scale));
    }
  };
};

}  // namespace

void multiply_by_integer_scales(const bench::SuperProduct& product) {
  bench::multiply_any_form<IntegerVectors>(product);
}

}  // namespace cairn::avx512
