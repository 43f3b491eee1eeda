// The loops without newer instructions, and the choice.
#include "sample/passes.h"

#include "base/cpu_features.h"
#include "base/philox.h"
#include "sample/pass_loops.h"

namespace cairn::sample {

namespace {

struct One {
  struct Int {
    int32_t v;
    Int() = default;
    explicit Int(int32_t x) : v(x) {}
    friend Int operator+(Int a, Int b) { return Int(int32_t(uint32_t(a.v) + uint32_t(b.v))); }
    friend Int operator-(Int a, Int b) { return Int(int32_t(uint32_t(a.v) - uint32_t(b.v))); }
    friend Int operator&(Int a, Int b) { return Int(a.v & b.v); }
    friend Int operator<<(Int a, int k) { return Int(int32_t(uint32_t(a.v) << k)); }
    friend Int operator>>(Int a, int k) { return Int(a.v >> k); }
  };
  static constexpr size_t kWidth = 1;

  float v;
  One() = default;
  explicit One(float x) : v(x) {}
  static One load(const float* values) { return One(*values); }
  void store(float* out) const { *out = v; }
  static uint32_t above_bits(const float* values, float floor) {
    uint32_t bits = 0;
    for (size_t j = 0; j < kPassLanes; ++j) bits |= (values[j] > floor ? 1u : 0u) << j;
    return bits;
  }

  friend One operator+(One a, One b) { return One(a.v + b.v); }
  friend One operator-(One a, One b) { return One(a.v - b.v); }
  friend One operator*(One a, One b) { return One(a.v * b.v); }
  friend One operator/(One a, One b) { return One(a.v / b.v); }
  friend bool operator<(One a, One b) { return a.v < b.v; }
  friend One fma(One a, One b, One c) { return One(__builtin_fmaf(a.v, b.v, c.v)); }
  friend One select(bool mask, One a, One b) { return mask ? a : b; }
  friend Int bits_of(One x) { return Int(elementary::bits_of(x.v)); }
  friend One from_bits(Int x) { return One(elementary::from_bits(x.v)); }
};

float largest(const float* values, size_t count) {
  return loops::largest<One>(values, count);
}

size_t find_above(const float* values, size_t count, float floor, uint32_t* indices) {
  return loops::find_above<One>(values, count, floor, indices);
}

ExpSums exp_sums(const float* values, size_t count, float reference) {
  return loops::exp_sums<One>(values, count, reference);
}

ValueSums value_sums(const float* values, size_t count, float reference) {
  return loops::value_sums<One>(values, count, reference);
}

void divide(const float* values, size_t count, float divisor, float* out) {
  loops::divide<One>(values, count, divisor, out);
}

void nearness(const float* values, size_t count, float center, float* out) {
  loops::nearness<One>(values, count, center, out);
}

void keep_allowed(const float* values, size_t count, const uint64_t* words, float* out) {
  loops::keep_allowed(values, 0, count, words, out);
}

void noise_words(const NoiseKey& key, uint32_t first, size_t count, uint32_t* words) {
  for (size_t i = 0; i < count; ++i) {
    words[i] = philox4x32({first + uint32_t(i), key.position, key.stream, 0},
                          {uint32_t(key.seed), uint32_t(key.seed >> 32)})[0];
  }
}

}  // namespace

const Passes& passes_plain() {
  static const Passes all{largest, find_above,   exp_sums, value_sums,
                          divide,  keep_allowed, nearness, noise_words};
  return all;
}

const Passes& passes() {
#if defined(__x86_64__)
  static const CpuFeatures features = detect_cpu_features();
  if (features.avx2 && features.fma) return avx2::passes_avx2();
#endif
  return passes_plain();
}

}  // namespace cairn::sample
