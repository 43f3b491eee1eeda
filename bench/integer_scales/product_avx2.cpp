// The kernels for AVX2: sums of byte products in 16 bits are multiplied by their scales as they are
// widened to 32.
#include "backends/cpu/product/matrix_vectors_avx2.h"
#include "bench/integer_scales/product.h"

namespace cairn::avx2 {
namespace {

struct IntegerVectors : MatrixVectors {
  static constexpr bool kStarts = false;
  static constexpr int kScaledRows = 3, kScaledVectors = 2;
  static constexpr int kWideRows = 4, kWideVectors = 2;
  static constexpr int kOneVectors = 2;

  static Ints no_words() { return _mm256_setzero_si256(); }
  static Ints load_words(const int32_t* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  static void store_words(int32_t* at, Ints words) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), words);
  }
  static Ints words(const uint8_t* at) { return twice(at); }
  static int32_t word(int32_t value) { return value | value << 16; }
  static Ints times(Ints words, int32_t factor) {
    return _mm256_mullo_epi16(words, _mm256_set1_epi32(factor));
  }
  static Ints twice(const uint8_t* at) { return pairs(at, at, 1); }
  static Ints pairs(const uint8_t* low, const uint8_t* high, int32_t factor) {
    const Ints by = _mm256_set1_epi16(int16_t(factor));
    const Ints a = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(low)));
    const Ints b = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(high)));
    const Ints both = _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
    return factor == 1 ? both : _mm256_mullo_epi16(both, by);
  }
  static Ints add_pairs(Ints sum, Ints pairs, int32_t two) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi32(two)));
  }
  static Ints even_times(Bytes bytes, int bias, Ints scale) {
    const Ints even = _mm256_and_si256(bytes, _mm256_set1_epi16(0xff));
    return _mm256_mullo_epi16(_mm256_sub_epi16(even, _mm256_set1_epi16(int16_t(bias))), scale);
  }
  static Ints odd_times(Bytes bytes, int bias, Ints scale) {
    const Ints odd = _mm256_srli_epi16(bytes, 8);
    return _mm256_mullo_epi16(_mm256_sub_epi16(odd, _mm256_set1_epi16(int16_t(bias))), scale);
  }

  template <cpu::Plane plane, int kDigits, int kSteps>
  struct ScaledDot {
    static constexpr int kRun = additions(plane) < kSteps ? additions(plane) : kSteps;
    Ints high, low;

    static Ints products(Bytes weights, const int8_t* x) {
      int32_t four;
      std::memcpy(&four, x, 4);
      return _mm256_maddubs_epi16(weights, _mm256_set1_epi32(four));
    }
    template <int kStep>
    void add(Bytes weights, const int8_t* upper, const int8_t* lower) {
      const Ints more = products(weights, lower);
      low = kStep % kRun == 0 ? more : _mm256_add_epi16(low, more);
      if constexpr (kDigits == 2) {
        const Ints upper_more = products(weights, upper);
        high = kStep % kRun == 0 ? upper_more : _mm256_add_epi16(high, upper_more);
      }
    }
    template <int kStep>
    static constexpr bool ends_run() {
      return kStep % kRun == kRun - 1;
    }
    Ints add_to(Ints sum, Ints scale) const {
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(low, scale));
      if constexpr (kDigits == 2) {
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(high, _mm256_slli_epi16(scale, 3)));
      }
      return sum;
    }
  };
};

}  // namespace

void multiply_by_integer_scales(const bench::SuperProduct& product) {
  bench::multiply_any_form<IntegerVectors>(product);
}

}  // namespace cairn::avx2
