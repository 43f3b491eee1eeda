// Runs one quantization and one matrix product, plain or by experts, on a backend by name: what the
// tests of the matrix kernels share. Everything here is small and owned by the caller.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "backends/cpu/pack/pack.h"
#include "backends/cpu/product/product.h"
#include "base/cpu_levels.h"
#include "device/backend.h"
#include "tests/backends/tiles_here.h"
#include "tests/backends/twins.h"
#include "tests/backends/upper_halves.h"

namespace cairn::matmul_test {

using Random = std::mt19937;

// All but the scalar one.
inline std::vector<IsaLevel> levels_here() {
  std::vector<IsaLevel> levels = levels_of(detect_cpu_features());
  levels.erase(levels.begin());
  return levels;
}

// A level of the backend, or kernels of another level in a form that this machine runs.
struct Kernels {
  std::string_view name;
  IsaLevel isa = IsaLevel::scalar;
  const cpu::MatrixKernels* twin = nullptr;
  bool is_slow = false;
};

inline std::vector<Kernels> kernels_here() {
  std::vector<Kernels> kernels;
  for (const IsaLevel level : levels_here()) kernels.push_back({name(level), level, nullptr});
#if defined(__x86_64__)
  if (runs_on(IsaLevel::avx512_vnni, detect_cpu_features())) {
    kernels.push_back({"avx2_vnni's twin", IsaLevel::avx512_vnni, &avxvnni_twin});
    const test::TilesBy tiles = test::tiles_here();
    if (tiles != test::TilesBy::nobody) {
      const bool is_slow = tiles == test::TilesBy::emulator;
      kernels.push_back({"amx itself", IsaLevel::avx512_vnni, &amx::matrix_kernels, is_slow});
    }
  }
#endif
  return kernels;
}

// A block of random bytes whose weights are finite and of a usable size.
inline void random_block(const quant::Type& type, std::byte* block, Random& random) {
  std::vector<float> weights(size_t(type.block_weights));
  for (;;) {
    for (int i = 0; i < type.block_bytes; ++i) block[i] = std::byte(random() & 255);
    type.decode(block, weights.data());
    bool usable = true;
    for (const float weight : weights) usable = usable && std::abs(weight) < 1e6f;
    if (usable) return;
  }
}

struct Matrix {
  std::vector<std::byte> blocks;
  Weight weight;

  Matrix(const quant::Type& type, int32_t cols, int32_t rows, int32_t count = 1) {
    const size_t bytes = quant::row_bytes(type, cols) * size_t(rows) * size_t(count);
    blocks.resize(bytes);
    weight = {.name = type.name, .type = &type, .cols = cols, .rows = rows, .count = count};
    weight.blocks = blocks;
  }
  void fill_randomly(Random& random) {
    const size_t block = size_t(weight.type->block_bytes);
    for (size_t at = 0; at < blocks.size(); at += block) {
      random_block(*weight.type, blocks.data() + at, random);
    }
  }
};

inline std::vector<float> gaussian(size_t count, Random& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

struct Case {
  std::string_view backend;
  IsaLevel isa = IsaLevel::scalar;
  int threads = 1;
  const cpu::MatrixKernels* twin = nullptr;  // Instead of the backend, for plain products.
  Numerics numerics = Numerics::exact_1;
};

// A product to run: x is [rows, cols], or [rows, ranks * cols] with x_per_rank.
struct Job {
  Weight weight;
  std::vector<float> x;
  int32_t rows = 0;
  std::vector<float> bias;      // As many as the weight has rows in all, or none.
  std::vector<int32_t> chosen;  // [rows, ranks]; empty: a plain product.
  int32_t ranks = 1;
  bool x_per_rank = false;
  bool all = false;                // Not chosen: the ranks are the matrices.
  std::vector<bool> answers = {};  // [rows]: rows of an answer; empty: all are a prompt's.

  int32_t width() const { return weight.cols * (x_per_rank ? ranks : 1); }
};

// A workspace that holds a job's inputs and outputs, with a gap of untouched floats after each row
// of outputs.
class Bench {
 public:
  static constexpr float kUntouched = -12345.0f;

  explicit Bench(const Job& job) : job_(job), outputs_(job.weight.rows * job.ranks) {
    const int32_t width = job.width();
    x_ = {.offset = 0, .stride = width, .width = width};
    chosen_ = {.offset = int64_t(job.rows) * width, .stride = job.ranks, .width = job.ranks};
    out_ = {.offset = (chosen_.offset + job.rows * job.ranks + 15) / 16 * 16,
            .stride = (outputs_ + 3) / 4 * 4 + 8,
            .width = outputs_};
    const int64_t floats = (out_.offset + int64_t(job.rows) * out_.stride + 15) / 16 * 16;
    if (!job.weight.type->is_float()) {
      quantized_ = {
          .offset = floats * 4, .stride = QuantizedRows::row_bytes(width, true), .width = width};
    }
    const size_t row_bytes = size_t(QuantizedRows::row_bytes(width, true));
    workspace_.resize((size_t(floats) * 4 + size_t(job.rows) * row_bytes) / 64 + 1);
    auto* base = reinterpret_cast<float*>(workspace_.data());
    std::copy(job.x.begin(), job.x.end(), base);
    if (!job.chosen.empty()) {
      std::memcpy(base + chosen_.offset, job.chosen.data(), job.chosen.size() * 4);
    }
    std::fill_n(base + out_.offset, int64_t(job.rows) * out_.stride, kUntouched);
  }

  Plan plan(const Weight& weight) const {
    Plan plan;
    if (quantized_.exists()) {
      plan.ops.push_back(op::Quantize{.x = x_, .out = quantized_});
      plan.stages.push_back({.first_op = 0, .op_count = 1});
    }
    plan.stages.push_back({.first_op = int32_t(plan.ops.size()), .op_count = 1});
    if (job_.chosen.empty() && !job_.all) {
      plan.ops.push_back(op::MatMul{
          .weight = &weight, .x = x_, .quantized = quantized_, .out = out_, .bias = job_.bias});
    } else {
      plan.ops.push_back(op::ExpertMatMul{.weight = &weight,
                                          .x = x_,
                                          .quantized = quantized_,
                                          .chosen = job_.all ? Rows{} : chosen_,
                                          .out = out_,
                                          .x_per_rank = job_.x_per_rank,
                                          .bias = job_.bias});
    }
    return plan;
  }

  // The outputs [rows, ranks * weight.rows].
  std::vector<float> execute(Backend& backend, const Plan& plan) {
    return execute([&](const Step& step) {
      EXPECT_TRUE(backend.prepare(plan));
      const bool were_clear = upper_halves_are_clear();
      backend.execute(plan, step);
      EXPECT_TRUE(!were_clear || upper_halves_are_clear()) << backend.isa();
    });
  }

  // Those that run(step) has computed.
  template <class Run>
  std::vector<float> execute(const Run& run) {
    const std::vector<Token> tokens(size_t(job_.rows), Token{0});
    std::vector<Slice> slices;  // One for each row.
    std::vector<int32_t> slice_of_row(size_t(job_.rows));
    std::iota(slice_of_row.begin(), slice_of_row.end(), 0);
    for (int32_t row = 0; row < job_.rows; ++row) {
      const bool is_answer = !job_.answers.empty() && job_.answers[size_t(row)];
      slices.push_back({.first_row = row, .row_count = 1, .is_answer = is_answer});
    }
    Step step;
    step.tokens = tokens;
    step.slice_of_row = slice_of_row;
    step.slices = slices;
    step.workspace = reinterpret_cast<std::byte*>(workspace_.data());
    run(step);
    std::vector<float> result;
    for (int32_t row = 0; row < job_.rows; ++row) {
      const float* from = step.row(out_, row);
      result.insert(result.end(), from, from + outputs_);
      for (int32_t i = outputs_; i < out_.stride; ++i) EXPECT_EQ(from[i], kUntouched);
    }
    return result;
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  const Job& job_;
  int32_t outputs_;
  Rows x_, chosen_, out_;
  QuantizedRows quantized_;
  std::vector<Line> workspace_;
};

inline std::unique_ptr<Backend> make_backend(const Case& on, ThreadPool& threads) {
  for (const BackendType* type : backend_types()) {
    if (type->name != on.backend) continue;
    auto made = type->create(
        {.threads = &threads, .isa = std::string(name(on.isa)), .numerics = on.numerics});
    EXPECT_TRUE(made);
    return std::move(made).value();
  }
  ADD_FAILURE() << "no backend " << on.backend;
  return nullptr;
}

// A plain product by these kernels alone.
inline std::vector<float> run_kernels(const cpu::MatrixKernels& kernels, const Job& job,
                                      bool halves_by_vectors = false) {
  const test::UsableTiles tiles;
  ThreadPool threads(1);
  cpu::PackedWeights weights({.halves_by_vectors = halves_by_vectors});
  const cpu::PackedMatrix* packed = weights.add(job.weight).value();
  EXPECT_TRUE(weights.pack({packed}, threads));
  const size_t row_count = size_t(job.rows), outputs = size_t(job.weight.rows);
  const size_t cols = size_t(job.weight.cols), blocks = cols / 32;
  std::vector<int8_t> q(row_count * cols);
  std::vector<float> scales(row_count * blocks), result(row_count * outputs, Bench::kUntouched);
  std::vector<int32_t> sums(row_count * blocks * 2);
  std::vector<uint16_t> rounded(row_count * cols);
  std::vector<cpu::ProductRow> rows(row_count);
  for (size_t row = 0; row < row_count; ++row) {
    const float* x = job.x.data() + row * cols;
    rows[row] = {.x = x, .out = result.data() + row * outputs};
    if (job.weight.type->is_float()) continue;
    rows[row].q = q.data() + row * cols;
    rows[row].scales = scales.data() + row * blocks;
    rows[row].sums = sums.data() + row * blocks * 2;
    if (kernels.round != nullptr) {
      rows[row].rounded = rounded.data() + row * cols;
      kernels.round(x, int64_t(cols), rounded.data() + row * cols);
      continue;
    }
    kernels.quantize(x, int64_t(cols), q.data() + row * cols, scales.data() + row * blocks,
                     sums.data() + row * blocks * 2);
  }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> scratch(
      std::max(cpu::product_scratch_bytes(*packed), kernels.scratch_bytes) / 64 + 1);
  for (int32_t first = 0; first < job.rows; first += kernels.chunk_rows) {
    kernels.multiply({.weight = packed,
                      .groups = cpu::group_at(*packed, 0, 0),
                      .output_count = job.weight.rows,
                      .row_count = std::min(kernels.chunk_rows, job.rows - first),
                      .rows = rows.data() + first,
                      .bias = job.bias.empty() ? nullptr : job.bias.data(),
                      .scratch = scratch[0].bytes,
                      .scale = job.weight.scale_of(0)});
  }
  return result;
}

inline std::vector<float> run(const Case& on, const Job& job) {
  if (on.twin != nullptr) return run_kernels(*on.twin, job);
  ThreadPool threads(on.threads);
  const std::unique_ptr<Backend> backend = make_backend(on, threads);
  Weight weight = job.weight;
  EXPECT_TRUE(backend->load(weight));
  Bench bench(job);
  return bench.execute(*backend, bench.plan(weight));
}

// Equal bits; any NaN equals any NaN, since which operand's payload survives is the compiler's
// choice.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) return false;
  }
  return true;
}

}  // namespace cairn::matmul_test
