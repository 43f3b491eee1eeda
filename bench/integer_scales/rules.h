// Products of K types in which sub-scales stay integers, as candidates for a second exact numerics:
// rules, arguments and kernels, as plain data. An output is, for each 256 columns in ascending
// order,
//   acc = fma(float(isum), d * s, acc), then with offsets acc = fma(float(msum), -dmin * s, acc)
// isum is the exact integer sum of scale * factor * w * q, msum that of minimum * factor * q.
#pragma once

#include <cstdint>

#include "backends/cpu/pack/packed.h"

namespace cairn::bench {

// How activations become integers q, in blocks of 256 with one f32 scale s.
enum class Rule : uint8_t {
  eight,    // 8 bits a value.
  factors,  // 8 bits, and each 32 have a factor of 1 to 8 that makes their step coarser.
  eleven,   // 11 bits: q = 8 * high + low.
};
inline constexpr int32_t kFactorMax = 8;
inline constexpr int32_t kElevenMax = 1019;  // 8 * 127 + 3

struct SuperRow {
  const int8_t* high;     // [cols]: q, or with eleven bits its upper digit.
  const int8_t* low;      // [cols]: its lower digit, -4 to 3.
  const int16_t* wide;    // [cols]: q; of each four columns 0, 2, 1, 3.
  const int16_t* sums;    // [cols / 16]: of q times the factor.
  const int8_t* factors;  // [cols / 32]
  const float* scales;    // [cols / 256]
  float* out;
};

struct SuperProduct {
  const cpu::PackedMatrix* weight;  // Of a K type.
  int32_t first_group, group_count;
  int32_t row_count;  // One, or up to cpu::kChunkRows.
  const SuperRow* rows;
  std::byte* scratch;  // kSuperScratchBytes, 64-byte aligned.
  Rule rule;
};
inline constexpr int64_t kSuperScratchBytes = int64_t(4) << 20;

}  // namespace cairn::bench

namespace cairn::avx2 {
void multiply_by_integer_scales(const bench::SuperProduct& product);
}
namespace cairn::avx512 {
void multiply_by_integer_scales(const bench::SuperProduct& product);
}
