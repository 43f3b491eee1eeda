// Would other exact numerics for K types pay, in which sub-scales stay integers? Their speed beside
// exact-1's kernels, on one core, and their error against real arithmetic:
// `integer_scales_bench [ROUNDS]`. Every kernel's bits are first compared with scalar code; with 0
// rounds that is all.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "backends/cpu/pack/pack.h"
#include "backends/cpu/product/product.h"
#include "base/arena.h"
#include "base/cpu_features.h"
#include "bench/figures.h"
#include "bench/integer_scales/rules.h"
#include "quant/quant.h"

namespace cairn::bench {
namespace {

constexpr int32_t kCols = 2048;
constexpr int32_t kManyRows = 512, kManyOutputs = 1024, kOneOutputs = 49152;
constexpr int32_t kTestOutputs = 256, kTestRows = 23;

struct Kernels {
  const char* name;
  const cpu::MatrixKernels* exact;
  void (*multiply)(const SuperProduct& product);
};

// --- Activations.

enum class Inputs { normal, student3, gated, outliers20, outliers100 };
constexpr struct {
  Inputs inputs;
  const char* name;
} kInputs[] = {{Inputs::normal, "normal"},
               {Inputs::student3, "t, 3 degrees"},
               {Inputs::gated, "silu(a) b"},
               {Inputs::outliers20, "8 channels x 20"},
               {Inputs::outliers100, "8 channels x 100"}};

std::vector<float> make_inputs(Inputs inputs, int32_t rows, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::student_t_distribution<float> student(3);
  std::vector<float> x(size_t(rows) * kCols);
  for (size_t i = 0; i < x.size(); ++i) {
    const int32_t channel = int32_t(i % kCols);
    x[i] = inputs == Inputs::student3 ? student(random) : normal(random);
    if (inputs == Inputs::gated) {
      const float gate = normal(random) * 2;
      x[i] *= gate / (1 + std::exp(-gate));
    }
    if (channel % (kCols / 8) == 77) {
      if (inputs == Inputs::outliers20) x[i] *= 20;
      if (inputs == Inputs::outliers100) x[i] *= 100;
    }
  }
  return x;
}

// Rows that a rule has rounded.
struct Rounded {
  std::vector<int16_t> q;       // [row][column]
  std::vector<int8_t> factors;  // [row][column / 32]
  std::vector<float> scales;    // [row][column / 256]
};

float largest(const float* x, int count) {
  float most = 0;
  for (int i = 0; i < count; ++i) most = std::max(most, std::fabs(x[i]));
  return most;
}

int16_t nearest(float x, float step, float most) {
  return int16_t(step == 0 ? 0 : std::nearbyint(std::clamp(x / step, -most, most)));
}

Rounded round_rows(Rule rule, const std::vector<float>& x) {
  Rounded out;
  for (size_t block = 0; block < x.size(); block += 256) {
    const float amax = largest(&x[block], 256);
    const float most = rule == Rule::eleven ? float(kElevenMax) : 127;
    const float s = rule == Rule::factors ? amax / (most * float(kFactorMax)) : amax / most;
    out.scales.push_back(s);
    for (size_t unit = block; unit < block + 256; unit += 32) {
      int factor = 1;
      if (rule == Rule::factors && s > 0) {
        // The smallest whose largest integer holds the unit.
        while (factor < kFactorMax && largest(&x[unit], 32) > most * s * float(factor)) ++factor;
      }
      out.factors.push_back(int8_t(factor));
      for (size_t i = unit; i < unit + 32; ++i) {
        out.q.push_back(nearest(x[i], s * float(factor), most));
      }
    }
  }
  return out;
}

// What rows are to the kernels.
struct KernelRows {
  Rounded from;
  std::vector<int8_t> high, low;
  std::vector<int16_t> wide, sums;
  std::vector<float> out;
  std::vector<SuperRow> rows;

  KernelRows(Rule rule, Rounded rounded, int32_t outputs) : from(std::move(rounded)) {
    const size_t count = from.q.size(), row_count = count / kCols;
    out.assign(row_count * size_t(outputs), 0);
    for (size_t i = 0; i < count; ++i) {
      const int q = from.q[i], upper = rule == Rule::eleven ? (q + 4) >> 3 : q;
      high.push_back(int8_t(upper));
      low.push_back(int8_t(rule == Rule::eleven ? q - 8 * upper : q));
      constexpr int kOrder[4] = {0, 2, 1, 3};
      wide.push_back(from.q[i / 4 * 4 + size_t(kOrder[i % 4])]);
      if (i % 16 == 0) sums.push_back(0);
      sums.back() = int16_t(sums.back() + q * from.factors[i / 32]);
    }
    for (size_t row = 0; row < row_count; ++row) {
      rows.push_back({&high[row * kCols], &low[row * kCols], &wide[row * kCols],
                      &sums[row * (kCols / 16)], &from.factors[row * (kCols / 32)],
                      &from.scales[row * (kCols / 256)], &out[row * size_t(outputs)]});
    }
  }
};

struct ExactRows {
  std::vector<int8_t> q;
  std::vector<float> scales;
  std::vector<int32_t> sums;
  std::vector<float> out;
  std::vector<cpu::ProductRow> rows;

  ExactRows(const cpu::MatrixKernels& kernels, const std::vector<float>& x, int32_t outputs)
      : q(x.size()), scales(x.size() / 32), sums(x.size() / 16) {
    const size_t row_count = x.size() / kCols;
    out.assign(row_count * size_t(outputs), 0);
    kernels.quantize(x.data(), int64_t(x.size()), q.data(), scales.data(), sums.data());
    for (size_t row = 0; row < row_count; ++row) {
      rows.push_back({.q = &q[row * kCols],
                      .scales = &scales[row * (kCols / 32)],
                      .sums = &sums[row * (kCols / 16)],
                      .x = &x[row * kCols],
                      .out = &out[row * size_t(outputs)]});
    }
  }
};

// --- Weights.

struct Matrix {
  std::vector<std::byte> blocks;
  Weight weight;
  cpu::PackedMatrix packed;
  std::optional<Arena> data;

  // The first `distinct` rows are random, the others repeat them.
  Matrix(const char* type_name, int32_t outputs, int32_t distinct) {
    const quant::Type* type = quant::find(type_name);
    const size_t row_bytes = quant::row_bytes(*type, kCols);
    blocks.resize(row_bytes * size_t(outputs));
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 0.02f);
    std::vector<float> row(kCols);
    for (int32_t output = 0; output < outputs; ++output) {
      std::byte* at = &blocks[size_t(output) * row_bytes];
      if (output >= distinct) {
        std::memcpy(at, &blocks[size_t(output % distinct) * row_bytes], row_bytes);
        continue;
      }
      for (float& w : row) w = normal(random);
      quant::encode_row(*type, row, {at, row_bytes});
    }
    weight.name = "w";
    weight.type = type;
    weight.cols = kCols;
    weight.rows = outputs;
    weight.blocks = blocks;
    packed = cpu::packed_shape(weight);
    data =
        std::move(Arena::reserve(size_t(packed.group_bytes) * size_t(packed.group_count))).value();
    auto* bytes = reinterpret_cast<uint8_t*>(data->data());
    packed.data = bytes;
    for (int32_t group = 0; group < packed.group_count; ++group) {
      cpu::pack_group(weight, packed, 0, group, bytes + group * packed.group_bytes);
    }
  }
};

// --- Scalar code.

float dot(const Matrix& matrix, int32_t output, const Rounded& x, size_t row) {
  const quant::Type& type = *matrix.weight.type;
  const auto super_scales = cpu::format_rule(type).super_scales;
  const std::byte* block = matrix.weight.row(0, output);
  const int parts = type.halves ? 2 : 1;
  quant::Unit units[8];
  float acc = 0;
  for (size_t super = 0; super < kCols / 256; ++super, block += type.block_bytes) {
    type.integers(block, units);
    const cpu::SuperScales scales = super_scales(block);
    int32_t isum = 0, msum = 0;
    for (int i = 0; i < 256; ++i) {
      const int factor = x.factors[row * (kCols / 32) + super * 8 + size_t(i / 32)];
      const int q = factor * x.q[row * kCols + super * 256 + size_t(i)];
      const int part = i / (32 / parts);
      isum += scales.scales[part] * units[i / 32].q[i % 32] * q;
      msum += scales.minima[part] * q;
    }
    const float s = x.scales[row * (kCols / 256) + super];
    acc = std::fma(float(isum), to_float(scales.d) * s, acc);
    if (type.offsets) acc = std::fma(float(msum), -to_float(scales.dmin) * s, acc);
  }
  return acc;
}

// --- Runs.

class Scratch {
 public:
  Scratch() : arena_(std::move(Arena::reserve(size_t(32) << 20)).value()) {}
  std::byte* data() const { return arena_.data(); }

 private:
  Arena arena_;
};

void run(const Kernels& kernels, const Matrix& matrix, Rule rule, KernelRows& x,
         const Scratch& scratch) {
  std::vector<SuperRow> rows;
  for (size_t row = 0; row < x.rows.size(); row += cpu::kChunkRows) {
    rows.assign(x.rows.begin() + int64_t(row),
                x.rows.begin() + int64_t(std::min(row + cpu::kChunkRows, x.rows.size())));
    for (int32_t group = 0; group < matrix.packed.group_count; group += cpu::kPanels) {
      kernels.multiply({.weight = &matrix.packed,
                        .first_group = group,
                        .group_count = std::min(cpu::kPanels, matrix.packed.group_count - group),
                        .row_count = int32_t(rows.size()),
                        .rows = rows.data(),
                        .scratch = scratch.data(),
                        .rule = rule});
      for (SuperRow& one : rows) one.out += cpu::kPanels * cpu::kGroupRows;
    }
  }
}

void run_exact(const Kernels& kernels, const Matrix& matrix, ExactRows& x, const Scratch& scratch) {
  std::vector<cpu::ProductRow> rows;
  for (size_t row = 0; row < x.rows.size(); row += cpu::kChunkRows) {
    rows.assign(x.rows.begin() + int64_t(row),
                x.rows.begin() + int64_t(std::min(row + cpu::kChunkRows, x.rows.size())));
    for (int32_t group = 0; group < matrix.packed.group_count; group += cpu::kPanels) {
      const int32_t groups = std::min(cpu::kPanels, matrix.packed.group_count - group);
      kernels.exact->multiply({.weight = &matrix.packed,
                               .groups = cpu::group_at(matrix.packed, 0, group),
                               .output_count = groups * cpu::kGroupRows,
                               .row_count = int32_t(rows.size()),
                               .rows = rows.data(),
                               .bias = nullptr,
                               .scratch = scratch.data()});
      for (cpu::ProductRow& one : rows) one.out += cpu::kPanels * cpu::kGroupRows;
    }
  }
}

constexpr Rule kRules[] = {Rule::eight, Rule::factors, Rule::eleven};

// Whether the kernels have the scalar code's bits, with one row and with more.
bool has_same_bits(const Kernels& kernels, const char* type) {
  const Matrix matrix(type, kTestOutputs, kTestOutputs);
  const Scratch scratch;
  std::mt19937 random(2);
  bool same = true;
  for (const Rule rule : kRules) {
    for (const int32_t row_count : {1, kTestRows}) {
      const Rounded rounded = round_rows(rule, make_inputs(Inputs::student3, row_count, random));
      KernelRows x(rule, rounded, kTestOutputs);
      run(kernels, matrix, rule, x, scratch);
      std::vector<float> expected;
      for (size_t row = 0; row < size_t(row_count); ++row) {
        for (int32_t output = 0; output < kTestOutputs; ++output) {
          expected.push_back(dot(matrix, output, rounded, row));
        }
      }
      if (std::memcmp(expected.data(), x.out.data(), expected.size() * 4) == 0) continue;
      fmt::print(stderr, "{} {}: rule {} with {} rows has other bits than scalar code\n",
                 kernels.name, type, int(rule), row_count);
      same = false;
    }
  }
  return same;
}

// This thread's own time: other programs may run too.
double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// GMAC/s of exact-1 and of each rule, in turn; medians.
void measure(const Kernels& kernels, const char* type, int32_t row_count, int rounds) {
  const int32_t outputs = row_count == 1 ? kOneOutputs : kManyOutputs;
  const Matrix matrix(type, outputs, 64);
  const Scratch scratch;
  std::mt19937 random(3);
  const std::vector<float> inputs = make_inputs(Inputs::normal, row_count, random);
  ExactRows exact(*kernels.exact, inputs, outputs);
  std::vector<std::unique_ptr<KernelRows>> rows;
  for (const Rule rule : kRules) {
    rows.push_back(std::make_unique<KernelRows>(rule, round_rows(rule, inputs), outputs));
  }
  std::vector<double> times[4];
  for (int round = -1; round < rounds; ++round) {  // The first does not count.
    for (size_t which = 0; which < 4; ++which) {
      const double start = seconds();
      if (which == 0) {
        run_exact(kernels, matrix, exact, scratch);
      } else {
        run(kernels, matrix, kRules[which - 1], *rows[which - 1], scratch);
      }
      if (round >= 0) times[which].push_back(seconds() - start);
    }
  }
  fmt::print("{:8} {:5} {:4} rows", kernels.name, type, row_count);
  const double products = double(outputs) * kCols * row_count;
  for (const std::vector<double>& time : times) {
    const double median = quantile(time, 0.5);
    fmt::print("  {:7.1f} ({:4.2f} x)", products / median / 1e9, quantile(times[0], 0.5) / median);
  }
  if (row_count == 1) {
    const double bytes = double(matrix.packed.group_bytes) * matrix.packed.group_count;
    fmt::print("  exact-1 reads {:.1f} GB/s", bytes / quantile(times[0], 0.5) / 1e9);
  }
  fmt::print("\n");
}

// --- Errors.

// What activations in blocks of 32 become under exact-1.
std::vector<double> exact_values(const std::vector<float>& x) {
  std::vector<double> out;
  for (size_t unit = 0; unit < x.size(); unit += 32) {
    const float s = largest(&x[unit], 32) / 127;
    for (size_t i = unit; i < unit + 32; ++i) out.push_back(double(s) * nearest(x[i], s, 127));
  }
  return out;
}

std::vector<double> values_of(const Rounded& rounded) {
  std::vector<double> out;
  for (size_t i = 0; i < rounded.q.size(); ++i) {
    out.push_back(double(rounded.scales[i / 256]) * rounded.factors[i / 32] * rounded.q[i]);
  }
  return out;
}

// RMS of the outputs' errors, by that of the outputs, in percent; all in real arithmetic: what f32
// rounds is a thousandth of it.
double error_of(const std::vector<float>& weights, const std::vector<float>& x,
                const std::vector<double>& rounded) {
  double error = 0, power = 0;
  for (size_t row = 0; row < x.size(); row += kCols) {
    for (size_t output = 0; output < weights.size(); output += kCols) {
      double wanted = 0, found = 0;
      for (size_t k = 0; k < size_t(kCols); ++k) {
        wanted += double(weights[output + k]) * double(x[row + k]);
        found += double(weights[output + k]) * rounded[row + k];
      }
      error += (found - wanted) * (found - wanted);
      power += wanted * wanted;
    }
  }
  return 100 * std::sqrt(error / power);
}

void measure_errors(const char* type) {
  const Matrix matrix(type, 128, 128);
  std::vector<float> weights(128 * size_t(kCols));
  for (int32_t output = 0; output < 128; ++output) {
    quant::decode_row(*matrix.weight.type,
                      {matrix.weight.row(0, output), matrix.weight.row_bytes()},
                      std::span(weights).subspan(size_t(output) * kCols, kCols));
  }
  for (const auto& [inputs, name] : kInputs) {
    std::mt19937 random(4);
    const std::vector<float> x = make_inputs(inputs, 64, random);
    fmt::print("{:5} {:18} {:8.3f}", type, name, error_of(weights, x, exact_values(x)));
    for (const Rule rule : kRules) {
      fmt::print(" {:8.3f}", error_of(weights, x, values_of(round_rows(rule, x))));
    }
    fmt::print("\n");
  }
}

int run_all(int rounds) {
  std::vector<Kernels> levels;
  const CpuFeatures features = detect_cpu_features();
  if (runs_on(IsaLevel::avx2, features)) {
    levels.push_back({"AVX2", &avx2::matrix_kernels, &avx2::multiply_by_integer_scales});
  }
  if (runs_on(IsaLevel::avx512_vnni, features)) {
    levels.push_back({"AVX-512", &avx512::matrix_kernels, &avx512::multiply_by_integer_scales});
  }
  constexpr const char* kTypes[] = {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"};
  bool same = true;
  for (const Kernels& kernels : levels) {
    for (const char* type : kTypes) same = has_same_bits(kernels, type) && same;
  }
  if (!same || rounds == 0) return same ? 0 : 1;
  fmt::print("Error, % of the outputs: exact-1, 8 bits, 8 bits with factors, 11 bits\n");
  for (const char* type : {"Q4_K", "Q6_K"}) measure_errors(type);
  fmt::print("\nGMAC/s of one core: exact-1, 8 bits, 8 bits with factors, 11 bits\n");
  for (const Kernels& kernels : levels) {
    for (const char* type : kTypes) {
      for (const int32_t rows : {1, kManyRows}) measure(kernels, type, rows, rounds);
    }
  }
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int count, char** arguments) {
  return cairn::bench::run_all(count > 1 ? std::atoi(arguments[1]) : 15);
}
