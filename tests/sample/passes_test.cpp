// All versions of the loops give the same bits, for every length and for what is no number.
#include "sample/passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/cpu_features.h"
#include "base/philox.h"

namespace cairn::sample::passes_test {
namespace {

std::vector<float> values_with_everything(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 8);
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       3.4e38f,
                       -3.4e38f,
                       1e-45f,
                       0.0f,
                       -0.0f};
  std::vector<float> values(count);
  for (float& value : values) value = random() % 16 == 0 ? odd[random() % 8] : normal(random);
  return values;
}

template <class T>
void expect_same_bits(const T& a, const T& b, size_t count) {
  EXPECT_EQ(std::memcmp(&a, &b, sizeof a), 0) << count;
}

TEST(Passes, EveryVersionGivesTheSameBits) {
#if defined(__x86_64__)
  const CpuFeatures features = detect_cpu_features();
  if (!features.avx2 || !features.fma) GTEST_SKIP() << "no AVX2 here";
  const Passes& plain = passes_plain();
  const Passes& fast = avx2::passes_avx2();
  for (size_t count = 0; count <= kChunk; count += count < 40 ? 1 : 13) {
    for (uint32_t seed = 0; seed < 4; ++seed) {
      const auto values = values_with_everything(count, uint32_t(count) * 4 + seed);
      const float largest = plain.largest(values.data(), count);
      expect_same_bits(largest, fast.largest(values.data(), count), count);
      for (const float reference : {largest, 3.5f}) {
        if (std::isinf(reference)) continue;
        expect_same_bits(plain.exp_sums(values.data(), count, reference),
                         fast.exp_sums(values.data(), count, reference), count);
        expect_same_bits(plain.value_sums(values.data(), count, reference),
                         fast.value_sums(values.data(), count, reference), count);
      }
      std::vector<uint32_t> found(kChunk), found_fast(kChunk);
      for (const float floor : {-std::numeric_limits<float>::infinity(), -3.0f, 5.0f}) {
        const size_t above = plain.find_above(values.data(), count, floor, found.data());
        ASSERT_EQ(above, fast.find_above(values.data(), count, floor, found_fast.data()));
        EXPECT_EQ(found, found_fast);
      }
      std::vector<float> out(kChunk), out_fast(kChunk);
      for (const float number : {0.7f, 1e-44f, 1e30f}) {
        plain.divide(values.data(), count, number, out.data());
        fast.divide(values.data(), count, number, out_fast.data());
        EXPECT_EQ(std::memcmp(out.data(), out_fast.data(), count * sizeof(float)), 0);
        plain.nearness(values.data(), count, number, out.data());
        fast.nearness(values.data(), count, number, out_fast.data());
        EXPECT_EQ(std::memcmp(out.data(), out_fast.data(), count * sizeof(float)), 0);
      }
      std::mt19937_64 random(seed);
      const uint64_t mask[] = {random(), random() & random(), ~uint64_t(0), random() | random()};
      plain.keep_allowed(values.data(), count, mask, out.data());
      fast.keep_allowed(values.data(), count, mask, out_fast.data());
      EXPECT_EQ(std::memcmp(out.data(), out_fast.data(), count * sizeof(float)), 0);
      std::vector<uint32_t> words(kChunk, 1), words_fast(kChunk, 1);
      const NoiseKey key{0x123456789abcdef0u + seed, 77, 0};
      plain.noise_words(key, 0xfffffff0u, count, words.data());
      fast.noise_words(key, 0xfffffff0u, count, words_fast.data());
      EXPECT_EQ(words, words_fast);
    }
  }
#else
  GTEST_SKIP() << "one version only";
#endif
}

TEST(Passes, NoiseWordsAreThoseOfTheGenerator) {
  const NoiseKey key{0xfeedfacecafebeefu, 4000000000u, 1};
  uint32_t words[100];
  passes().noise_words(key, 261000, 100, words);
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(words[i],
              philox4x32({261000 + i, key.position, key.stream, 0}, {0xcafebeefu, 0xfeedfaceu})[0]);
  }
}

}  // namespace
}  // namespace cairn::sample::passes_test
