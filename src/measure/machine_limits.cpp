// Loops that do nothing but read, or nothing but multiply and add.
#include "measure/machine_limits.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/arena.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cairn::measure {

namespace {

constexpr size_t kReadBytes = size_t(256) << 20;

double seconds_now(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// Other programs only ever add time, so that the fast runs count; but not the one that was lucky.
// One thread alone is measured by the time that it ran itself.
template <class F>
double best_seconds(ThreadPool& threads, size_t run_count, const F& run) {
  const clockid_t clock = threads.thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  std::vector<double> seconds;
  for (size_t repeat = 0; repeat < run_count; ++repeat) {
    const double start = seconds_now(clock);
    run();
    seconds.push_back(seconds_now(clock) - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[run_count / 6];
}

#if defined(__x86_64__)
// Instructions that do not wait for each other: more than latency times throughput asks for.
constexpr int kFused = 12;
constexpr int64_t kTurns = 200'000;

struct PeakLoop {
  void (*loop)(int64_t turns) = nullptr;
  double ops_per_turn = 0;
};

// The loop of all of them. Inlined by order into functions for an instruction set; Step::add(sum,
// x), which is for that set as well, is then inlined too. All bytes are 0x3f: as floats 0.75, whose
// sums of products stay near 3.
template <class Step>
[[gnu::always_inline]] inline void run_chains(int64_t turns) {
  typename Step::Vector starts[kFused], sums[kFused];
  std::memset(starts, 0x3f, sizeof starts);
  asm volatile("" : "+m"(starts));  // Nobody knows that they are equal: no chain is left out.
#pragma GCC unroll 12
  for (int fused = 0; fused < kFused; ++fused) sums[fused] = starts[fused];
  const typename Step::Vector x = starts[0];
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (auto& sum : sums) Step::add(sum, x);
  }
#pragma GCC unroll 12
  for (int fused = 0; fused < kFused; ++fused) starts[fused] = sums[fused];
  asm volatile("" : : "m"(starts));  // All sums are wanted.
}

struct DotsAvx512Vnni {
  using Vector = __m512i;
  __attribute__((target("avx512f,avx512bw,avx512vnni"))) static void add(Vector& sum,
                                                                         const Vector& x) {
    sum = _mm512_dpbusd_epi32(sum, x, x);
  }
};
__attribute__((target("avx512f,avx512bw,avx512vnni"), noinline)) void dots_avx512_vnni(
    int64_t turns) {
  run_chains<DotsAvx512Vnni>(turns);
}

struct DotsAvxVnni {
  using Vector = __m256i;
  __attribute__((target("avx2,avxvnni"))) static void add(Vector& sum, const Vector& x) {
    sum = _mm256_dpbusd_avx_epi32(sum, x, x);
  }
};
__attribute__((target("avx2,avxvnni"), noinline)) void dots_avx_vnni(int64_t turns) {
  run_chains<DotsAvxVnni>(turns);
}

// Without a byte dot product: products of bytes in 16 bits, pairs of these in 32, their sum.
struct DotsAvx2 {
  using Vector = __m256i;
  __attribute__((target("avx2"))) static void add(Vector& sum, const Vector& x) {
    const __m256i pairs = _mm256_maddubs_epi16(x, sum);  // Of the sum: so none is made twice.
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};
__attribute__((target("avx2"), noinline)) void dots_avx2(int64_t turns) {
  run_chains<DotsAvx2>(turns);
}

struct FmasAvx512 {
  using Vector = __m512;
  __attribute__((target("avx512f"))) static void add(Vector& sum, const Vector& x) {
    sum = _mm512_fmadd_ps(sum, x, x);
  }
};
__attribute__((target("avx512f"), noinline)) void fmas_avx512(int64_t turns) {
  run_chains<FmasAvx512>(turns);
}

struct PairsAvx512 {
  using Vector = __m512;
  __attribute__((target("avx512f,avx512bf16"))) static void add(Vector& sum, const Vector& x) {
    const auto pairs = __builtin_bit_cast(__m512bh, x);
    sum = _mm512_dpbf16_ps(sum, pairs, pairs);
  }
};
__attribute__((target("avx512f,avx512bf16"), noinline)) void pairs_avx512(int64_t turns) {
  run_chains<PairsAvx512>(turns);
}

struct FmasAvx2 {
  using Vector = __m256;
  __attribute__((target("avx2,fma"))) static void add(Vector& sum, const Vector& x) {
    sum = _mm256_fmadd_ps(sum, x, x);
  }
};
__attribute__((target("avx2,fma"), noinline)) void fmas_avx2(int64_t turns) {
  run_chains<FmasAvx2>(turns);
}

PeakLoop integer_loop(IsaLevel isa) {
  switch (isa) {
    case IsaLevel::scalar:
      return {};
    case IsaLevel::avx2:
      return {&dots_avx2, 2.0 * 32 * kFused};
    case IsaLevel::avx2_vnni:
      return {&dots_avx_vnni, 2.0 * 32 * kFused};
    default:  // Tiles are not counted: what fits into them is no measure for the rest.
      return {&dots_avx512_vnni, 2.0 * 64 * kFused};
  }
}

PeakLoop float_loop(IsaLevel isa, bool bf16) {
  if (bf16) return {&pairs_avx512, 2.0 * 32 * kFused};
  if (isa == IsaLevel::scalar) return {};
  if (isa < IsaLevel::avx512_vnni) return {&fmas_avx2, 2.0 * 8 * kFused};
  return {&fmas_avx512, 2.0 * 16 * kFused};
}

double peak(ThreadPool& threads, size_t run_count, const PeakLoop& measured) {
  if (measured.loop == nullptr) return 0;
  const double seconds =
      best_seconds(threads, run_count, [&] { threads.run([&](int) { measured.loop(kTurns); }); });
  return measured.ops_per_turn * double(kTurns) * threads.thread_count() / seconds;
}
#endif

// A number made of all words of some lines of 64 bytes, so that each is read. By the widest loads
// that there are: of narrow ones, too few lines fit into what a processor looks ahead.
using ReadLoop = uint64_t (*)(const std::byte* lines, size_t count);

uint64_t read_words(const std::byte* lines, size_t count) {
  const auto* words = reinterpret_cast<const uint64_t*>(lines);
  uint64_t parts[8] = {};
  for (size_t at = 0; at < count * 8; at += 8) {
    for (size_t lane = 0; lane < 8; ++lane) parts[lane] ^= words[at + lane];
  }
  return std::accumulate(parts, parts + 8, uint64_t{0});
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) uint64_t read_avx2(const std::byte* lines, size_t count) {
  const auto* vectors = reinterpret_cast<const __m256i*>(lines);
  __m256i parts[4] = {};
  for (size_t at = 0; at + 4 <= count * 2; at += 4) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) parts[i] = _mm256_xor_si256(parts[i], vectors[at + i]);
  }
  uint64_t words[16];
  std::memcpy(words, parts, sizeof words);
  return std::accumulate(words, words + 16, uint64_t{0});
}

__attribute__((target("avx512f"))) uint64_t read_avx512(const std::byte* lines, size_t count) {
  const auto* vectors = reinterpret_cast<const __m512i*>(lines);
  __m512i parts[4] = {};
  for (size_t at = 0; at + 4 <= count; at += 4) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) parts[i] = _mm512_xor_si512(parts[i], vectors[at + i]);
  }
  uint64_t words[32];
  std::memcpy(words, parts, sizeof words);
  return std::accumulate(words, words + 32, uint64_t{0});
}
#endif

ReadLoop widest_reads() {
#if defined(__x86_64__)
  const CpuFeatures features = detect_cpu_features();
  if (runs_on(IsaLevel::avx512_vnni, features)) return &read_avx512;
  if (runs_on(IsaLevel::avx2, features)) return &read_avx2;
#endif
  return &read_words;
}

double read_bandwidth(ThreadPool& threads, size_t run_count) {
  Result<Arena> reserved = Arena::reserve(kReadBytes);
  if (!reserved) return 0;
  const Arena arena = std::move(reserved).value();
  std::memset(arena.data(), 1, kReadBytes);
  const ReadLoop read = widest_reads();
  std::vector<uint64_t> sums(size_t(threads.thread_count()) * 8);
  const size_t lines = kReadBytes / 64 / size_t(threads.thread_count()) / 4 * 4;
  const double seconds = best_seconds(threads, run_count, [&] {
    threads.run([&](int worker) {
      sums[size_t(worker) * 8] += read(arena.data() + size_t(worker) * lines * 64, lines);
    });
  });
  const uint64_t sum = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
  asm volatile("" : : "r"(sum));  // The sums are wanted.
  return double(lines * 64 * size_t(threads.thread_count())) / seconds;
}

}  // namespace

MachineLimits measure_limits(ThreadPool& threads, [[maybe_unused]] IsaLevel isa,
                             [[maybe_unused]] bool bf16, size_t run_count) {
  MachineLimits limits{.read_bytes_per_second = read_bandwidth(threads, run_count)};
#if defined(__x86_64__)
  limits.integer_ops_per_second = peak(threads, run_count, integer_loop(isa));
  limits.float_ops_per_second = peak(threads, run_count, float_loop(isa, bf16));
#endif
  return limits;
}

}  // namespace cairn::measure
