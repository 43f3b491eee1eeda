// Plain random numbers for made-up weights: the SplitMix64 sequence (Steele et al., 2014). Integer
// arithmetic and exact float steps only, so that a seed gives the same file on every machine.
// Thread rule: a stream belongs to one thread; streams with different keys are independent.
#pragma once

#include <cstdint>

namespace cairn {

class RandomStream {
 public:
  // Mixes the parts of a key, so that neighbouring keys give unrelated streams.
  RandomStream(uint64_t seed, uint64_t stream, uint64_t index) : state_(seed) {
    state_ = next() ^ stream;
    state_ = next() ^ index;
    next();
  }

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // A number below `bound`. REQUIRES: 0 < bound < 2^32.
  uint32_t below(uint32_t bound) { return uint32_t(((next() >> 32) * bound) >> 32); }

  // In [0, 1).
  float unit() { return float(next() >> 40) * 0x1p-24f; }

  // Mean 0, variance 1, close to a normal distribution: the sum of four uniform numbers, which ends
  // at 3.46.
  float normal() {
    const uint64_t bits = next();
    int32_t sum = 0;
    for (int part = 0; part < 4; ++part) sum += int32_t((bits >> (16 * part)) & 0xffffu);
    // Four times the variance of 0 … 65535 is (2^32 - 1) / 3.
    return float(sum - 2 * 65535) * 2.6429e-5f;
  }

 private:
  uint64_t state_;
};

}  // namespace cairn
