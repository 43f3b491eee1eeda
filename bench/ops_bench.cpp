// Speed of the ops that are no matrix products, on the cpu backend as the engine runs it. Arguments
// of each: instruction set (1 AVX2, 3 AVX-512), threads. Attention in decode walks 16 layers'
// keys and values, so that they come from memory and not from a cache; compare with ReadMemory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "backends/cpu/ops.h"
#include "backends/reference/reference.h"
#include "base/arena.h"
#include "base/cpu_features.h"
#include "tests/backends/step_builder.h"

namespace cairn {
namespace {

using test::SliceSpec;
using test::World;

template <IsaLevel Isa>
host::HostKernel choose(const Op& op) {
  return cpu::choose_ops_kernel(op, Isa);
}

// A plan of ops that depend on each other, run again and again.
class Runner {
 public:
  Runner(benchmark::State& state, World& world, std::vector<Op> ops)
      : threads_(int(state.range(1))),
        backend_(&threads_,
                 IsaLevel(state.range(0)) == IsaLevel::avx2 ? &choose<IsaLevel::avx2>
                                                            : &choose<IsaLevel::avx512_vnni>,
                 &reference::kernel_for),
        step_(world.step()) {
    if (!runs_on(IsaLevel(state.range(0)), detect_cpu_features())) {
      state.SkipWithError("this machine lacks the instruction set");
    }
    plan_.ops = std::move(ops);
    for (int32_t op = 0; op < int32_t(plan_.ops.size()); ++op) plan_.stages.push_back({op, 1});
    CHECK(backend_.prepare(plan_));
  }
  Step& step() { return step_; }
  void run() { backend_.execute(plan_, step_); }

 private:
  ThreadPool threads_;
  host::HostBackend backend_;
  Step step_;
  Plan plan_;
};

void read_memory(benchmark::State& state) {
  constexpr size_t kBytes = size_t(256) << 20;
  auto reserved = Arena::reserve(kBytes);
  CHECK(reserved);
  const Arena arena = std::move(reserved).value();
  std::memset(arena.data(), 1, kBytes);
  ThreadPool threads(int(state.range(1)));
  std::vector<uint64_t> sums(size_t(threads.thread_count()) * 8);
  for (auto _ : state) {
    threads.run([&](int worker) {
      const size_t share = kBytes / 8 / size_t(threads.thread_count());
      const auto* words = reinterpret_cast<const uint64_t*>(arena.data()) + size_t(worker) * share;
      uint64_t parts[8] = {};
      for (size_t at = 0; at + 8 <= share; at += 8) {
        for (size_t lane = 0; lane < 8; ++lane) parts[lane] += words[at + lane];
      }
      for (const uint64_t part : parts) sums[size_t(worker) * 8] += part;
    });
  }
  benchmark::DoNotOptimize(sums.data());
  state.SetBytesProcessed(state.iterations() * int64_t(kBytes));
}

constexpr int32_t kHeads = 32, kKvHeads = 8, kDim = 64;

// Rows of one sequence at a depth; `layer_count` planes of their own.
void attend(benchmark::State& state, int32_t row_count, int32_t depth, int32_t layer_count) {
  World world(1, {{.row_count = row_count, .first_position = depth}}, size_t(64) << 20);
  const int32_t plane = world.plane(kKvHeads, kDim, kDim, KvType::f16, KvType::f16);
  const Rows q = world.rows(kHeads * kDim), out = world.rows(kHeads * kDim);
  const KvPlane first = world.step().kv_planes[size_t(plane)];
  const size_t page_count = size_t(depth + row_count + kPageTokens - 1) / kPageTokens + 3;
  const size_t keys_bytes = first.keys_page_bytes * page_count;
  const size_t values_bytes = first.values_page_bytes * page_count;
  auto reserved = Arena::reserve((keys_bytes + values_bytes) * size_t(layer_count));
  CHECK(reserved);
  Arena arena = std::move(reserved).value();
  std::vector<KvPlane> planes;
  std::vector<Op> ops;
  for (int32_t layer = 0; layer < layer_count; ++layer) {
    KvPlane copy = first;
    copy.keys = arena.allocate(keys_bytes);
    copy.values = arena.allocate(values_bytes);
    std::memcpy(copy.keys, first.keys, keys_bytes);
    std::memcpy(copy.values, first.values, values_bytes);
    planes.push_back(copy);
    ops.push_back(
        op::Attend{.q = q, .out = out, .plane = layer, .head_count = kHeads, .scale = 0.125f});
  }
  Runner runner(state, world, ops);
  runner.step().kv_planes = planes;
  for (auto _ : state) runner.run();
  const int64_t pairs = int64_t(row_count) * depth + int64_t(row_count) * (row_count + 1) / 2;
  const double flops = 4.0 * kDim * kHeads * double(pairs) * layer_count;
  state.counters["flops"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  if (row_count == 1) {
    state.SetBytesProcessed(state.iterations() * layer_count * kKvHeads * 2 * kDim * 2 *
                            int64_t(depth + 1));
  }
}

void attend_decode(benchmark::State& state) {
  attend(state, 1, int32_t(state.range(2)), 16);
}
void attend_prefill(benchmark::State& state) {
  attend(state, 512, int32_t(state.range(2)), 1);
}

void store_kv(benchmark::State& state) {
  World world(1, {{.row_count = int32_t(state.range(2))}}, size_t(64) << 20);
  const int32_t plane = world.plane(kKvHeads, kDim, kDim, KvType::f16, KvType::f16);
  const Rows k = world.rows(kKvHeads * kDim), v = world.rows(kKvHeads * kDim);
  Runner runner(state, world, {op::StoreKv{.k = k, .v = v, .plane = plane}});
  for (auto _ : state) runner.run();
}

void mamba2_scan(benchmark::State& state) {
  constexpr int32_t kScanHeads = 48, kHeadDim = 64, kStateSize = 128;
  World world(1, {{.row_count = int32_t(state.range(2))}}, size_t(256) << 20);
  const int32_t inner = kScanHeads * kHeadDim;
  const Rows x = world.rows(inner), b = world.rows(kStateSize), c = world.rows(kStateSize);
  const Rows dt = world.rows(kScanHeads), out = world.rows(inner);
  const std::vector<float> a(kScanHeads, -1.0f);
  Runner runner(state, world,
                {op::Mamba2Scan{.x = x,
                                .b = b,
                                .c = c,
                                .dt = dt,
                                .out = out,
                                .a = a.data(),
                                .d = world.parameters(kScanHeads),
                                .dt_bias = world.parameters(kScanHeads),
                                .head_count = kScanHeads,
                                .head_dim = kHeadDim,
                                .state_size = kStateSize,
                                .state = world.state(size_t(inner) * kStateSize)}});
  for (auto _ : state) runner.run();
  state.SetItemsProcessed(state.iterations() * state.range(2));
  // A state is multiplied, and two sums are made of it.
  state.counters["flops"] = benchmark::Counter(5.0 * inner * kStateSize * double(state.range(2)),
                                               benchmark::Counter::kIsIterationInvariantRate);
}

// All layers of a small model, so that in decode their states come from memory.
void gated_delta_scan(benchmark::State& state) {
  constexpr int32_t kDeltaHeads = 16, kDeltaDim = 128, kLayers = 18;
  constexpr int32_t kWidth = kDeltaHeads * kDeltaDim;
  World world(1, {{.row_count = int32_t(state.range(2))}}, size_t(256) << 20);
  const float spread = 1.0f / std::sqrt(float(kDeltaDim));
  const Rows q = world.rows(kWidth, RowSet::tokens, spread);
  const Rows k = world.rows(kWidth, RowSet::tokens, spread);
  const Rows v = world.rows(kWidth), out = world.rows(kWidth);
  const Rows dt = world.rows(kDeltaHeads), rate = world.rows(kDeltaHeads);
  const std::vector<float> a(kDeltaHeads, -1.0f), dt_bias(kDeltaHeads, -3.0f);
  std::vector<Op> ops;
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    ops.push_back(op::GatedDeltaScan{.q = q,
                                     .k = k,
                                     .v = v,
                                     .out = out,
                                     .dt = dt,
                                     .rate = rate,
                                     .a = a.data(),
                                     .dt_bias = dt_bias.data(),
                                     .head_count = kDeltaHeads,
                                     .key_head_count = kDeltaHeads,
                                     .key_dim = kDeltaDim,
                                     .value_dim = kDeltaDim,
                                     .state = world.state(size_t(kWidth) * kDeltaDim)});
  }
  Runner runner(state, world, ops);
  for (auto _ : state) runner.run();
  state.SetItemsProcessed(state.iterations() * state.range(2));
  // A state is multiplied, and three sums are made of or with it.
  const double flops = 7.0 * kWidth * kDeltaDim * kLayers * double(state.range(2));
  state.counters["flops"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void short_conv(benchmark::State& state) {
  constexpr int32_t kChannels = 3328, kKernel = 4;
  World world(1, {{.row_count = int32_t(state.range(2))}}, size_t(64) << 20);
  const Rows x = world.rows(kChannels), out = world.rows(kChannels);
  Runner runner(state, world,
                {op::ShortConv{.x = x,
                               .out = out,
                               .weight = world.parameters(size_t(kChannels) * kKernel),
                               .kernel = kKernel,
                               .state = world.state(size_t(kChannels) * (kKernel - 1))}});
  for (auto _ : state) runner.run();
  state.SetItemsProcessed(state.iterations() * state.range(2) * kChannels);
}

void rms_norm(benchmark::State& state) {
  constexpr int32_t kWidth = 2048;
  World world(1, {{.row_count = int32_t(state.range(2))}}, size_t(64) << 20);
  const Rows x = world.rows(kWidth), out = world.rows(kWidth);
  Runner runner(state, world,
                {op::RmsNorm{.x = x,
                             .out = out,
                             .gain = world.parameters(kWidth),
                             .group = kWidth,
                             .epsilon = 1e-5f}});
  for (auto _ : state) runner.run();
  state.SetItemsProcessed(state.iterations() * state.range(2) * kWidth);
}

void gate(benchmark::State& state) {
  constexpr int32_t kWidth = 8192;
  World world(1, {{.row_count = int32_t(state.range(2))}}, size_t(64) << 20);
  const Rows gates = world.rows(kWidth), x = world.rows(kWidth);
  Runner runner(state, world, {op::Gate{.gate = gates, .x = x, .out = x}});
  for (auto _ : state) runner.run();
  state.SetItemsProcessed(state.iterations() * state.range(2) * kWidth);
}

const std::vector<int64_t> kLevels = {int64_t(IsaLevel::avx2), int64_t(IsaLevel::avx512_vnni)};
const std::vector<int64_t> kThreads = {1, 2};

BENCHMARK(read_memory)->ArgsProduct({{1}, kThreads})->UseRealTime();
BENCHMARK(attend_decode)->ArgsProduct({kLevels, kThreads, {512, 4096, 16384}})->UseRealTime();
BENCHMARK(attend_prefill)->ArgsProduct({kLevels, kThreads, {0, 4096}})->UseRealTime();
BENCHMARK(store_kv)->ArgsProduct({kLevels, {1}, {1, 512}})->UseRealTime();
BENCHMARK(mamba2_scan)->ArgsProduct({kLevels, kThreads, {1, 512}})->UseRealTime();
BENCHMARK(gated_delta_scan)->ArgsProduct({kLevels, kThreads, {1, 512}})->UseRealTime();
BENCHMARK(short_conv)->ArgsProduct({kLevels, {1}, {1, 512}})->UseRealTime();
BENCHMARK(rms_norm)->ArgsProduct({kLevels, {1}, {1, 512}})->UseRealTime();
BENCHMARK(gate)->ArgsProduct({kLevels, {1}, {1, 512}})->UseRealTime();

}  // namespace
}  // namespace cairn

BENCHMARK_MAIN();
