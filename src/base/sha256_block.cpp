// Constants are the first 32 bits of the fractional parts of the cube roots of the first 64 primes;
// those of the state, of the square roots of the first eight.
#include "base/sha256_block.h"

#include <bit>
#include <cstddef>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace cairn {
namespace {

alignas(16) constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t(bytes[0]) << 24 | uint32_t(bytes[1]) << 16 | uint32_t(bytes[2]) << 8 | bytes[3];
}

#if defined(__x86_64__)
bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0;
}

// The instructions want the words in the order ABEF, CDGH, and do two rounds at a time.
__attribute__((target("sha,sse4.1"))) void take_by_instruction(Sha256State& state,
                                                               const uint8_t* block) {
  const __m128i swapped = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* const words = reinterpret_cast<__m128i*>(state.data());
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  const __m128i abef_before = abef, cdgh_before = cdgh;
  __m128i w[4];
  for (size_t i = 0; i < 4; ++i) {
    const auto* const from = reinterpret_cast<const __m128i*>(block) + i;
    w[i] = _mm_shuffle_epi8(_mm_loadu_si128(from), swapped);
  }
  for (size_t i = 0; i < 16; ++i) {
    const auto* const constants = reinterpret_cast<const __m128i*>(kRounds) + i;
    const __m128i sum = _mm_add_epi32(w[i % 4], _mm_load_si128(constants));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
    if (i >= 12) continue;  // The words of four rounds, four times later.
    const __m128i last = w[(i + 3) % 4];
    const __m128i between = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
    const __m128i first = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
    w[i % 4] = _mm_sha256msg2_epu32(_mm_add_epi32(first, between), last);
  }
  const __m128i feba = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xB1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}
#endif

}  // namespace

void take_sha256_block_by_definition(Sha256State& state, const uint8_t* block) {
  uint32_t w[64];
  for (size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    const uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3;
    const uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t chosen = (e & f) ^ (~e & g);
    const uint32_t t1 = h + s1 + chosen + kRounds[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + s0 + majority;
  }
  const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < added.size(); ++i) state[i] += added[i];
}

void take_sha256_block(Sha256State& state, const uint8_t* block) {
#if defined(__x86_64__)
  static const bool kHasInstructions = has_instructions();
  if (kHasInstructions) return take_by_instruction(state, block);
#endif
  take_sha256_block_by_definition(state, block);
}

}  // namespace cairn
