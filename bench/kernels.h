// What the benchmarks of kernels share: the thread pool and the machine's limits, steps laid out
// for a backend, and the counters that say which share of the limit a kernel reaches.
// Thread rule: one thread.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "device/backend.h"
#include "measure/machine_limits.h"
#include "measure/step_costs.h"

namespace cairn::bench {

// Far more than the caches hold.
constexpr size_t kFromMemoryBytes = size_t(128) << 20;
// From so many rows on computing takes longer than reading.
constexpr int32_t kManyRows = 64;

// Something that can be run again and again, and what one run costs at least.
class Work {
 public:
  virtual ~Work() = default;
  virtual void run() = 0;
  virtual measure::StepCosts costs() const = 0;
};

class Context {
 public:
  Context(int thread_count, IsaLevel isa, Numerics numerics)
      : threads_(thread_count),
        isa_(isa),
        numerics_(numerics),
        limits_(measure::measure_limits(threads_, isa, numerics == Numerics::fast_1 &&
                                                          detect_cpu_features().avx512_bf16)) {}

  const measure::MachineLimits& limits() const { return limits_; }
  IsaLevel isa() const { return isa_; }
  int thread_count() const { return threads_.thread_count(); }

  // Null: this machine does not compute by these numerics.
  std::unique_ptr<Backend> make_backend() {
    for (const BackendType* type : backend_types()) {
      if (type->name != "cpu") continue;
      auto made = type->create(
          {.threads = &threads_, .isa = std::string(name(isa_)), .numerics = numerics_});
      return made ? std::move(made).value() : nullptr;
    }
    return nullptr;
  }

  // Registers a benchmark. Its work is made when it is its turn, and kept until another's turn.
  void add(const std::string& name, std::function<std::unique_ptr<Work>()> make) {
    auto* registered =
        benchmark::RegisterBenchmark(name.c_str(), [this, name, make](benchmark::State& state) {
          if (kept_name_ != name) {
            kept_.reset();
            kept_ = make();
            kept_name_ = name;
            kept_->run();
          }
          for (auto _ : state) kept_->run();
          report(state, kept_->costs());
        });
    // One thread alone is measured by the time that it ran itself: other programs may run too.
    if (thread_count() > 1) registered->UseRealTime();
  }

 private:
  void report(benchmark::State& state, const measure::StepCosts& costs) const {
    const auto rate = benchmark::Counter::kIsIterationInvariantRate;
    state.counters["bytes/s"] = benchmark::Counter(costs.bytes(), rate);
    state.counters["op/s"] = benchmark::Counter(costs.integer_ops + costs.float_ops, rate);
    state.counters["of_roof"] = benchmark::Counter(measure::least_seconds(costs, limits_), rate);
  }

  ThreadPool threads_;
  IsaLevel isa_;
  Numerics numerics_;
  measure::MachineLimits limits_;
  std::string kept_name_;
  std::unique_ptr<Work> kept_;
};

// An arena whose bytes are handed out one behind the other.
class Bytes {
 public:
  explicit Bytes(size_t size) : arena_(std::move(Arena::reserve(size)).value()) {}

  std::byte* data() const { return arena_.data(); }
  // Aligned to a cache line.
  std::byte* take(size_t bytes) {
    std::byte* const begin = data() + used_;
    used_ += (bytes + 63) / 64 * 64;
    CHECK(used_ <= arena_.size());
    return begin;
  }

 private:
  Arena arena_;
  size_t used_ = 0;
};

// Ops one after another on rows of random numbers, laid out as the engine lays them out.
class Rowwise : public Work {
 public:
  Rowwise(Context& context, int32_t row_count)
      : backend_(context.make_backend()),
        bytes_(size_t(1) << 30),
        tokens_(size_t(row_count), Token(0)) {
    for (int32_t row = 0; row < row_count; ++row) positions_.push_back(row);
    slice_of_row_.assign(size_t(row_count), 0);
  }

  Rows rows(int32_t width, float spread = 1.0f) {
    const int32_t stride = (width + 15) / 16 * 16;
    const size_t count = size_t(stride) * tokens_.size();
    float* data = floats(count);
    for (size_t i = 0; i < count; ++i) data[i] = normal_(random_) * spread;
    return {
        .offset = data - reinterpret_cast<float*>(bytes_.data()), .stride = stride, .width = width};
  }
  QuantizedRows quantized(int32_t width) {
    const int32_t stride = QuantizedRows::row_bytes(width, backend_->rounds_prompts());
    const std::byte* data = bytes_.take(size_t(stride) * tokens_.size());
    return {.offset = data - bytes_.data(), .stride = stride, .width = width};
  }
  Constant parameters(size_t count) {
    float* data = floats(count);
    for (size_t i = 0; i < count; ++i) data[i] = normal_(random_);
    return std::span<const float>(data, count);
  }
  Weight& weight(const Weight& like) {
    weights_.push_back(std::make_unique<Weight>(like));
    CHECK(backend_->load(*weights_.back()));
    return *weights_.back();
  }

  // The last thing before the first run.
  void prepare(std::vector<Op> ops) {
    plan_.ops = std::move(ops);
    for (size_t op = 0; op < plan_.ops.size(); ++op) plan_.stages.push_back({int32_t(op), 1});
    plan_.row_count_max = int32_t(tokens_.size());
    CHECK(backend_->prepare(plan_));
    slice_ = {.row_count = int32_t(tokens_.size()), .is_answer = tokens_.size() == 1};
  }

  void run() override {
    backend_->execute(plan_, Step{.tokens = tokens_,
                                  .positions = positions_,
                                  .slice_of_row = slice_of_row_,
                                  .slices = {&slice_, 1},
                                  .workspace = bytes_.data()});
  }
  // Of products, those of their matrices.
  measure::StepCosts costs() const override {
    measure::StepCosts costs =
        measure::step_costs(plan_, memory::Layout(), {.rows = int32_t(tokens_.size())});
    costs.weight_bytes += more_bytes_;
    return costs;
  }
  // What ops without matrices read and write.
  void add_bytes(double bytes) { more_bytes_ += bytes; }

 private:
  float* floats(size_t count) {
    return reinterpret_cast<float*>(bytes_.take(count * sizeof(float)));
  }

  std::mt19937 random_{1};
  std::normal_distribution<float> normal_;
  std::unique_ptr<Backend> backend_;
  Bytes bytes_;
  std::vector<Token> tokens_;
  std::vector<int32_t> positions_, slice_of_row_;
  std::vector<std::unique_ptr<Weight>> weights_;
  Plan plan_;
  Slice slice_;
  double more_bytes_ = 0;
};

void add_products(Context& context);
void add_attention(Context& context);
void add_recurrences(Context& context);
void add_row_ops(Context& context);

}  // namespace cairn::bench
