// Loops over rows of logits, the only work that grows with the vocabulary, each compiled for the
// instruction sets that a machine may have and chosen once. All versions give the same bits: a sum
// has kPassLanes partial sums whatever the width of a register, and fused products are fused in
// all. NaN and -infinity have no probability and are passed over; +infinity is the largest number.
// Thread-safe: pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::sample {

constexpr size_t kPassLanes = 16;
// Rows are walked in pieces of so many tokens: four words of a mask, and small enough for the first
// cache. Longer pieces are an error.
constexpr size_t kChunk = 256;

struct ExpSums {
  double total = 0;     // Sum of e^(x - reference).
  double weighted = 0;  // Sum of e^(x - reference) * (x - reference).
};

struct ValueSums {
  double total = 0;    // Sum of x - reference.
  double squares = 0;  // Sum of (x - reference)^2.
  size_t count = 0;
};

struct NoiseKey {
  uint64_t seed;
  uint32_t position;
  uint32_t stream;
};

// REQUIRES, for all of them: count <= kChunk.
struct Passes {
  float (*largest)(const float* values, size_t count);  // -infinity where there is none.
  // The indices of values above `floor`, ascending; returns how many.
  size_t (*find_above)(const float* values, size_t count, float floor, uint32_t* indices);
  ExpSums (*exp_sums)(const float* values, size_t count, float reference);
  ValueSums (*value_sums)(const float* values, size_t count, float reference);
  // out = values / divisor, kept finite where it was.
  void (*divide)(const float* values, size_t count, float divisor, float* out);
  // out = values, but -infinity where the token's bit in `words` is not set.
  void (*keep_allowed)(const float* values, size_t count, const uint64_t* words, float* out);
  // out = -|values - center|.
  void (*nearness)(const float* values, size_t count, float center, float* out);
  // The random words of tokens first, first + 1, … (sample/noise.h).
  void (*noise_words)(const NoiseKey& key, uint32_t first, size_t count, uint32_t* words);
};

// Those for this machine.
const Passes& passes();
// The versions that there are; every x86-64 machine and every other may call the plain one.
const Passes& passes_plain();
namespace avx2 {
const Passes& passes_avx2();  // REQUIRES: AVX2 and FMA. Only in builds for x86-64.
}

}  // namespace cairn::sample
