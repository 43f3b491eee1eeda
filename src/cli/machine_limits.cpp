// Loops that do nothing but read, or nothing but multiply and add.
#include "cli/machine_limits.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/arena.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cairn::cli {

namespace {

constexpr size_t kReadBytes = size_t(256) << 20;
constexpr size_t kRuns = 12;

double seconds_now(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// Other programs only ever add time, so that the fast runs count; but not the one that was lucky.
// One thread alone is measured by the time that it ran itself.
template <class F>
double best_seconds(ThreadPool& threads, const F& run) {
  const clockid_t clock = threads.thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  std::vector<double> seconds;
  for (size_t repeat = 0; repeat < kRuns; ++repeat) {
    const double start = seconds_now(clock);
    run();
    seconds.push_back(seconds_now(clock) - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRuns / 6];
}

#if defined(__x86_64__)
// Instructions that do not wait for each other: more than latency times throughput asks for.
constexpr int kChains = 12;
constexpr int64_t kTurns = 200'000;

// Each loop gives something that depends on all that it computed, so that none of it is left out.
// Unsigned: their sums may wrap.
using Loop = uint64_t (*)(int64_t turns);
struct PeakLoop {
  Loop loop = nullptr;
  double ops_per_turn = 0;
};

__attribute__((target("avx512f,avx512bw,avx512vnni"), noinline)) uint64_t dots_avx512_vnni(
    int64_t turns) {
  const __m512i x = _mm512_set1_epi8(3);
  __m512i sums[kChains];
  for (__m512i& sum : sums) sum = x;
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, x, x);
  }
  __m512i total = x;
#pragma GCC unroll 12
  for (const __m512i& sum : sums) total = _mm512_add_epi32(total, sum);
  alignas(64) uint64_t parts[8];
  _mm512_store_si512(parts, total);
  return parts[0];
}

__attribute__((target("avx2,avxvnni"), noinline)) uint64_t dots_avx_vnni(int64_t turns) {
  const __m256i x = _mm256_set1_epi8(3);
  __m256i sums[kChains];
  for (__m256i& sum : sums) sum = x;
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) sum = _mm256_dpbusd_avx_epi32(sum, x, x);
  }
  __m256i total = x;
#pragma GCC unroll 12
  for (const __m256i& sum : sums) total = _mm256_add_epi32(total, sum);
  return uint64_t(_mm256_extract_epi64(total, 0));
}

// Without a byte dot product: products of bytes in 16 bits, pairs of these in 32, their sum.
__attribute__((target("avx2"), noinline)) uint64_t dots_avx2(int64_t turns) {
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i x = _mm256_set1_epi8(3);
  __m256i sums[kChains];
  for (__m256i& sum : sums) sum = x;
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) {
      const __m256i pairs = _mm256_maddubs_epi16(x, sum);  // Of the sum: so none is made twice.
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
  }
  __m256i total = x;
#pragma GCC unroll 12
  for (const __m256i& sum : sums) total = _mm256_add_epi32(total, sum);
  return uint64_t(_mm256_extract_epi64(total, 0));
}

__attribute__((target("avx512f"), noinline)) uint64_t fmas_avx512(int64_t turns) {
  const __m512 x = _mm512_set1_ps(0.5f);
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = x;
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, x, x);
  }
  __m512 total = x;
#pragma GCC unroll 12
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  return uint64_t(_mm512_cvtss_f32(total));
}

__attribute__((target("avx2,fma"), noinline)) uint64_t fmas_avx2(int64_t turns) {
  const __m256 x = _mm256_set1_ps(0.5f);
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = x;
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, x, x);
  }
  __m256 total = x;
#pragma GCC unroll 12
  for (const __m256& sum : sums) total = _mm256_add_ps(total, sum);
  return uint64_t(_mm256_cvtss_f32(total));
}

PeakLoop integer_loop(IsaLevel isa) {
  switch (isa) {
    case IsaLevel::scalar:
      return {};
    case IsaLevel::avx2:
      return {&dots_avx2, 2.0 * 32 * kChains};
    case IsaLevel::avx2_vnni:
      return {&dots_avx_vnni, 2.0 * 32 * kChains};
    default:  // Tiles are not counted: what fits into them is no measure for the rest.
      return {&dots_avx512_vnni, 2.0 * 64 * kChains};
  }
}

PeakLoop float_loop(IsaLevel isa) {
  if (isa == IsaLevel::scalar) return {};
  if (isa < IsaLevel::avx512_vnni) return {&fmas_avx2, 2.0 * 8 * kChains};
  return {&fmas_avx512, 2.0 * 16 * kChains};
}

double peak(ThreadPool& threads, const PeakLoop& measured) {
  if (measured.loop == nullptr) return 0;
  std::vector<uint64_t> results(size_t(threads.thread_count()) * 8);  // A cache line each.
  const double seconds = best_seconds(threads, [&] {
    threads.run([&](int worker) { results[size_t(worker) * 8] += measured.loop(kTurns); });
  });
  return measured.ops_per_turn * double(kTurns) * threads.thread_count() / seconds;
}
#endif

}  // namespace

double read_bandwidth(ThreadPool& threads) {
  Result<Arena> reserved = Arena::reserve(kReadBytes);
  if (!reserved) return 0;
  const Arena arena = std::move(reserved).value();
  std::memset(arena.data(), 1, kReadBytes);
  std::vector<uint64_t> sums(size_t(threads.thread_count()) * 8);
  const size_t share = kReadBytes / 64 / size_t(threads.thread_count()) * 8;
  const double seconds = best_seconds(threads, [&] {
    threads.run([&](int worker) {
      const auto* words = reinterpret_cast<const uint64_t*>(arena.data()) + size_t(worker) * share;
      uint64_t parts[8] = {};
      for (size_t at = 0; at < share; at += 8) {
        for (size_t lane = 0; lane < 8; ++lane) parts[lane] ^= words[at + lane];
      }
      sums[size_t(worker) * 8] += std::accumulate(parts, parts + 8, uint64_t{0});
    });
  });
  const uint64_t sum = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
  asm volatile("" : : "r"(sum));  // The sums are wanted.
  return double(share * 8 * size_t(threads.thread_count())) / seconds;
}

MachineLimits measure_limits(ThreadPool& threads, [[maybe_unused]] IsaLevel isa) {
  MachineLimits limits{.read_bytes_per_second = read_bandwidth(threads)};
#if defined(__x86_64__)
  limits.integer_ops_per_second = peak(threads, integer_loop(isa));
  limits.float_ops_per_second = peak(threads, float_loop(isa));
#endif
  return limits;
}

}  // namespace cairn::cli
