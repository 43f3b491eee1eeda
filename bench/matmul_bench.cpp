// Speed of matrix products on the cpu backend, beside what the machine could do: weights read per
// second for one row (decode), next to a plain read of memory; integer operations per second for
// many rows (prefill), next to the byte dot product alone.
//   matmul_bench [threads] [isa] [format]…
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/arena.h"
#include "device/backend.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cairn {
namespace {

double seconds(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// The best of some runs: other programs only ever add time. One thread alone is measured by the
// time that it ran itself.
template <class F>
double best_seconds(int thread_count, const F& run) {
  const clockid_t clock = thread_count == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  double best = 1e9;
  for (int repeat = 0; repeat < 9; ++repeat) {
    const double start = seconds(clock);
    run();
    best = std::min(best, seconds(clock) - start);
  }
  return best;
}

// Bytes a second that all threads together read from memory.
double read_bandwidth(ThreadPool& threads) {
  constexpr size_t kBytes = size_t(512) << 20;
  auto reserved = Arena::reserve(kBytes);
  if (!reserved) return 0;
  const Arena arena = std::move(reserved).value();
  std::memset(arena.data(), 1, kBytes);
  std::vector<uint64_t> sums(size_t(threads.thread_count()) * 8);
  const double time = best_seconds(threads.thread_count(), [&] {
    threads.run([&](int worker) {
      const size_t share = kBytes / 8 / size_t(threads.thread_count());
      const auto* words = reinterpret_cast<const uint64_t*>(arena.data()) + size_t(worker) * share;
      uint64_t parts[8] = {};
      for (size_t at = 0; at + 8 <= share; at += 8) {
        for (size_t lane = 0; lane < 8; ++lane) parts[lane] += words[at + lane];
        __builtin_prefetch(words + at + 512);
      }
      sums[size_t(worker) * 8] += std::accumulate(parts, parts + 8, uint64_t{0});
    });
  });
  return double(kBytes) / time;
}

#if defined(__x86_64__)
constexpr int64_t kDotTurns = 2'000'000;
constexpr int kDotChains = 12;  // More than the latency of the instruction asks for.

__attribute__((target("avx512f,avx512vnni"), noinline)) int64_t dot_turns(int64_t turns) {
  __m512i a = _mm512_set1_epi8(3);
  __m512i sums[kDotChains];
  for (__m512i& sum : sums) sum = a;
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (int chain = 0; chain < kDotChains; ++chain) {
      sums[chain] = _mm512_dpbusd_epi32(sums[chain], a, a);
    }
  }
  __m512i total = a;
#pragma GCC unroll 12
  for (int chain = 0; chain < kDotChains; ++chain) total = _mm512_add_epi32(total, sums[chain]);
  alignas(64) int64_t parts[8];
  _mm512_store_si512(parts, total);
  return parts[0];
}

// Multiplications and additions a second of one thread that does nothing but vpdpbusd.
double dot_peak() {
  int64_t sum = 0;
  const double time = best_seconds(1, [&] { sum += dot_turns(kDotTurns); });
  return sum == 1 ? 0 : kDotChains * 64 * 2 * double(kDotTurns) / time;
}
#endif

struct Setup {
  const quant::Type* type;
  int32_t cols, rows, copies, batch;
};

struct Times {
  double pack = 0, product = 0;  // Seconds for one matrix.
};

// `copies` different matrices are multiplied in turn.
Times measure_product(ThreadPool& threads, IsaLevel isa, const Setup& setup) {
  const BackendType* cpu = nullptr;
  for (const BackendType* type : backend_types()) {
    if (type->name == "cpu") cpu = type;
  }
  auto backend = std::move(cpu->create({.threads = &threads, .isa = isa})).value();
  const size_t matrix_bytes = quant::row_bytes(*setup.type, setup.cols) * size_t(setup.rows);
  std::vector<std::byte> blocks(matrix_bytes);
  std::mt19937 random(1);
  for (std::byte& byte : blocks) byte = std::byte(random() & 0x3b);  // Small scales, no NaN.
  std::vector<Weight> weights(size_t(setup.copies));
  for (Weight& weight : weights) {
    weight = {.name = "w", .type = setup.type, .cols = setup.cols, .rows = setup.rows};
    weight.blocks = blocks;
    if (!backend->load(weight)) return {};
  }
  const bool is_float = setup.type->is_float();
  const Rows x{.offset = 0, .stride = setup.cols, .width = setup.cols};
  const Rows out{
      .offset = int64_t(setup.cols) * setup.batch, .stride = setup.rows, .width = setup.rows};
  QuantizedRows quantized;
  const int64_t floats = (out.offset + int64_t(setup.rows) * setup.batch + 15) / 16 * 16;
  if (!is_float) {
    quantized = {
        .offset = floats * 4, .stride = QuantizedRows::row_bytes(setup.cols), .width = setup.cols};
  }
  Plan plan;
  if (!is_float) plan.ops.push_back(op::Quantize{.x = x, .out = quantized});
  for (const Weight& weight : weights) {
    plan.ops.push_back(op::MatMul{
        .weight = &weight, .x = is_float ? x : Rows{}, .quantized = quantized, .out = out});
  }
  for (size_t op = 0; op < plan.ops.size(); ++op) plan.stages.push_back({int32_t(op), 1});
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> workspace(
      size_t(floats * 4 + int64_t(setup.batch) * QuantizedRows::row_bytes(setup.cols)) / 64 + 1);
  auto* floats_at = reinterpret_cast<float*>(workspace.data());
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < out.offset; ++i) floats_at[i] = normal(random);
  const std::vector<Token> tokens(size_t(setup.batch), Token{0});
  Step step;
  step.tokens = tokens;
  step.workspace = reinterpret_cast<std::byte*>(workspace.data());
  const clockid_t clock = threads.thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start = seconds(clock);
  if (!backend->prepare(plan)) return {};
  const double pack = (seconds(clock) - start) / setup.copies;
  backend->execute(plan, step);
  const double product =
      best_seconds(threads.thread_count(), [&] { backend->execute(plan, step); }) / setup.copies;
  return {pack, product};
}

void measure(ThreadPool& threads, IsaLevel isa, const quant::Type& type) {
  for (const auto& [cols, rows] : {std::pair{2048, 2048}, {8192, 2048}}) {
    const size_t matrix_bytes = quant::row_bytes(type, cols) * size_t(rows);
    const int32_t copies = int32_t((size_t(256) << 20) / matrix_bytes);  // Beyond any cache.
    fmt::print("{:8} {:5} x {:5}", type.name, cols, rows);
    const Times one = measure_product(threads, isa, {&type, cols, rows, copies, 1});
    const double bytes = 1e-9 * double(matrix_bytes);
    fmt::print("  packed at {:4.2f} GB/s", bytes / one.pack);
    fmt::print("  1 row: {:5.1f} GB/s", bytes / one.product);
    for (const int32_t batch : {4, 16, 512}) {
      const int32_t few = batch == 512 ? 1 : copies / 4 + 1;
      const Times many = measure_product(threads, isa, {&type, cols, rows, few, batch});
      fmt::print("  {} rows: {:5.1f} Gop/s", batch, 2e-9 * batch * cols * rows / many.product);
    }
    fmt::print("\n");
  }
}

int run(int argc, char** argv) {
  ThreadPool threads(argc > 1 ? std::max(1, std::atoi(argv[1])) : usable_core_count());
  IsaLevel isa = best_isa(detect_cpu_features());
  if (argc > 2) {
    auto parsed = parse_isa(argv[2]);
    if (!parsed) return fmt::print("{}\n", parsed.error().message), 1;
    isa = *parsed;
  }
  fmt::print("{} threads, {}; read: {:.1f} GB/s\n", threads.thread_count(), name(isa),
             read_bandwidth(threads) * 1e-9);
#if defined(__x86_64__)
  if (detect_cpu_features().avx512_vnni) {
    fmt::print("dot product alone, one thread: {:.1f} Gop/s\n", dot_peak() * 1e-9);
  }
#endif
  std::vector<std::string> formats(argv + std::min(argc, 3), argv + argc);
  if (formats.empty()) formats = {"Q4_0", "Q4_K", "Q6_K", "Q8_0", "Q5_K", "IQ4_XS", "F16"};
  for (const std::string& format : formats) {
    const quant::Type* type = quant::find(format);
    if (type == nullptr) return fmt::print("{}: no such format\n", format), 1;
    measure(threads, isa, *type);
  }
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  return cairn::run(argc, argv);
}
