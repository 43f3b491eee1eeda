// Transposes four rows of 32-bit numbers, or eight rows of 16-bit ones, in memory. Written with the
// compiler's own vectors of 16 bytes, which every processor has. Functions here are static.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cairn::cpu {
namespace {

using Words32 = uint32_t __attribute__((vector_size(16)));
using Words16 = uint16_t __attribute__((vector_size(16)));

template <class Vector>
Vector load_vector(const void* at) {
  Vector vector;
  std::memcpy(&vector, at, sizeof vector);
  return vector;
}

template <class Vector>
void store_vector(void* at, Vector vector) {
  std::memcpy(at, &vector, sizeof vector);
}

// 4 x 4 numbers of 32 bits: from four rows, `from` bytes on, to four columns.
inline void transpose_words32(const std::byte* const* rows, int64_t from, uint8_t* to,
                              int64_t column_stride) {
  const auto a = load_vector<Words32>(rows[0] + from);
  const auto b = load_vector<Words32>(rows[1] + from);
  const auto c = load_vector<Words32>(rows[2] + from);
  const auto d = load_vector<Words32>(rows[3] + from);
  const Words32 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Words32 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Words32 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Words32 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store_vector(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store_vector(to + column_stride, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store_vector(to + 2 * column_stride, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store_vector(to + 3 * column_stride, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// 8 x 8 numbers of 16 bits: halves of the rows interleaved, three times.
inline void transpose_words16(const std::byte* const* rows, int64_t from, uint8_t* to,
                              int64_t column_stride) {
  Words16 vectors[8], mixed[8];
  for (int i = 0; i < 8; ++i) vectors[i] = load_vector<Words16>(rows[i] + from);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      const Words16 a = vectors[i], b = vectors[i + 4];
      mixed[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      mixed[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    std::memcpy(vectors, mixed, sizeof vectors);
  }
  for (int i = 0; i < 8; ++i) store_vector(to + i * column_stride, vectors[i]);
}

}  // namespace
}  // namespace cairn::cpu
