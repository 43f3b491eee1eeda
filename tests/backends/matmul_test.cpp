// Matrix products: every format, on every instruction set that this machine has, must give the
// reference's bits for any shape, row count and thread count; and the reference must be close to
// products in f64. Covers, for both backends, matmul.cpp, pack.cpp, pack_rules.cpp, product_*.cpp
// and cpu.cpp.
#include <chrono>
#include <thread>

#include "tests/backends/matmul_fixture.h"

namespace cairn::matmul_test {
namespace {

// A shape in units of the format's block.
struct Shape {
  int32_t blocks, rows;
};

int32_t cols_of(const quant::Type& type, int32_t blocks) {
  return type.is_float() ? blocks * 37 : blocks * type.block_weights;  // 37: floats need no blocks.
}

TEST(MatMul, EveryFormatHasTheReferencesBits) {
  Random random(1);
  const std::vector<float> scale = {0.7f};
  for (const quant::Type* type : quant::all()) {
    // Each number of rows with every other shape.
    size_t pair = 0;
    for (const Shape shape : {Shape{1, 1}, Shape{3, 40}, Shape{9, 16}, Shape{2, 155}}) {
      Matrix matrix(*type, cols_of(*type, shape.blocks), shape.rows);
      matrix.fill_randomly(random);
      const std::vector<float> bias = gaussian(size_t(shape.rows), random);
      for (const int32_t rows : {1, 2, 3, 5, 8, 17, 33, 53}) {
        if (pair++ % 2 != 0) continue;
        Job job{.weight = matrix.weight, .rows = rows};
        job.x = gaussian(size_t(rows) * size_t(matrix.weight.cols), random);
        job.bias = rows % 2 == 0 ? std::vector<float>{} : bias;
        if (rows > 2) job.weight.scales = scale;
        const std::vector<float> expected = run({.backend = "reference"}, job);
        for (const Kernels& on : kernels_here()) {
          if (on.is_slow && rows != 53) continue;
          EXPECT_TRUE(same_bits(expected, run({"cpu", on.isa, 1 + rows % 2, on.twin}, job)))
              << type->name << " [" << matrix.weight.cols << ", " << shape.rows << "] x " << rows
              << " on " << on.name;
        }
      }
    }
  }
}

// Many rows of these multiply panels of columns and outputs, of which the last ones are parts.
TEST(MatMul, ManyRowsOfNarrowFloatsHaveTheReferencesBits) {
  Random random(5);
  for (const std::string_view name : {"F16", "BF16"}) {
    for (const int32_t cols : {255, 1023, 1024, 1025, 1500}) {
      for (const int32_t outputs : {16, 63, 64, 150}) {
        Matrix matrix(*quant::find(name), cols, outputs);
        matrix.fill_randomly(random);
        const int32_t rows = 60 + int32_t(random() % 30);
        Job job{.weight = matrix.weight, .rows = rows};
        job.x = gaussian(size_t(rows) * size_t(cols), random);
        if (rows % 2 == 0) job.bias = gaussian(size_t(outputs), random);
        const std::vector<float> expected = run({.backend = "reference"}, job);
        for (const Kernels& on : kernels_here()) {
          if (on.is_slow) continue;
          EXPECT_TRUE(same_bits(expected, run({"cpu", on.isa, 1, on.twin}, job)))
              << name << " [" << cols << ", " << outputs << "] x " << rows << " on " << on.name;
        }
      }
    }
  }
}

TEST(MatMul, ThreadsAndRowsInTheBatchDoNotChangeABit) {
  Random random(2);
  for (const std::string_view name : {"Q4_K", "Q6_K", "Q8_0", "BF16"}) {
    const quant::Type& type = *quant::find(name);
    Matrix matrix(type, 512, 530);
    matrix.fill_randomly(random);
    Job all{.weight = matrix.weight, .rows = 270};  // More than the chunk of rows of a task.
    all.x = gaussian(size_t(all.rows) * 512, random);
    for (const Kernels& on : kernels_here()) {
      if (on.is_slow) continue;
      const std::vector<float> expected = run({"cpu", on.isa, 1, on.twin}, all);
      for (const int threads : {2, 5}) {
        EXPECT_TRUE(same_bits(expected, run({"cpu", on.isa, threads, on.twin}, all)))
            << name << threads;
      }
      for (const int32_t row : {0, 127, 128, 269}) {
        Job one{.weight = matrix.weight, .rows = 1};
        one.x.assign(all.x.begin() + row * 512, all.x.begin() + (row + 1) * 512);
        const auto first = expected.begin() + row * 530;
        EXPECT_TRUE(same_bits({first, first + 530}, run({"cpu", on.isa, 2, on.twin}, one)))
            << name << row;
      }
    }
  }
}

// More rows, outputs and columns than any kernel takes at a time.
TEST(MatMul, PartsOfATaskHaveTheReferencesBits) {
  Random random(6);
  Matrix matrix(*quant::find("Q8_0"), 544, cpu::kTileGroups * cpu::kGroupRows + 18);
  matrix.fill_randomly(random);
  Job job{.weight = matrix.weight, .rows = cpu::kTileChunkRows + 21};
  job.x = gaussian(size_t(job.rows) * 544, random);
  const std::vector<float> expected = run({.backend = "reference"}, job);
  for (const Kernels& on : kernels_here()) {
    EXPECT_TRUE(same_bits(expected, run({"cpu", on.isa, 2, on.twin}, job))) << on.name;
  }
}

TEST(MatMul, SkippedWorkersLeaveNothingUndone) {
  Random random(7);
  Matrix matrix(*quant::find("Q4_0"), 512, 530);
  matrix.fill_randomly(random);
  Job job{.weight = matrix.weight, .rows = 3};
  job.x = gaussian(size_t(job.rows) * 512, random);
  const std::vector<float> expected = run({.backend = "reference"}, job);
  ThreadPool threads(2);
  const auto backend = make_backend({"cpu", levels_here().back()}, threads);
  Weight weight = job.weight;
  ASSERT_TRUE(backend->load(weight));
  for (int time = 0; time < 3; ++time) {
    // Now one worker has made the others wait, and is left out of the next runs.
    for (int run = 0; run < 2; ++run) {
      threads.run_skipping_busy_workers([&](int worker) {
        if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        threads.barrier(worker);
      });
    }
    for (int step = 0; step < 20; ++step) {
      Bench bench(job);
      const Plan plan = bench.plan(weight);
      EXPECT_TRUE(same_bits(expected, bench.execute(*backend, plan))) << time << " " << step;
    }
  }
}

// The largest magnitudes that a format's integers have, times the largest activations: sums in 16
// bits would be the first to break.
struct Extreme {
  std::string_view name;
  int fill;           // Every byte of the block,
  int scale_offset;   // but for an f16 one here
  int second_offset;  // and here, unless negative.
};

constexpr Extreme kExtremes[] = {
    {"Q8_0", 0x80, 0, -1},   {"Q8_0", 0x7f, 0, -1},   {"Q4_0", 0xff, 0, -1},
    {"Q4_0", 0x00, 0, -1},   {"Q4_1", 0xff, 0, 2},    {"Q5_0", 0xff, 0, -1},
    {"Q5_1", 0xff, 0, 2},    {"Q4_K", 0xff, 0, 2},    {"Q5_K", 0xff, 0, 2},
    {"Q6_K", 0xff, 208, -1}, {"Q6_K", 0x00, 208, -1}, {"Q2_K", 0xff, 80, 82},
    {"Q3_K", 0x00, 108, -1}, {"IQ4_NL", 0x00, 0, -1}, {"IQ4_NL", 0xff, 0, -1},
    {"IQ4_XS", 0x00, 0, -1},
};

TEST(MatMul, LargestIntegersDoNotSaturate) {
  for (const Extreme& extreme : kExtremes) {
    const quant::Type& type = *quant::find(extreme.name);
    Matrix matrix(type, 4 * type.block_weights, 17);
    std::fill(matrix.blocks.begin(), matrix.blocks.end(), std::byte(extreme.fill));
    const uint16_t one = 0x3c00;
    for (size_t at = 0; at < matrix.blocks.size(); at += size_t(type.block_bytes)) {
      std::memcpy(&matrix.blocks[at + size_t(extreme.scale_offset)], &one, 2);
      if (extreme.second_offset < 0) continue;
      std::memcpy(&matrix.blocks[at + size_t(extreme.second_offset)], &one, 2);
    }
    for (const int32_t rows : {1, 2, 7, 14}) {
      Job job{.weight = matrix.weight, .rows = rows};
      job.x.assign(size_t(rows) * size_t(matrix.weight.cols), 1.0f);
      for (size_t i = size_t(rows) * size_t(matrix.weight.cols) / 2; i < job.x.size(); ++i) {
        job.x[i] = -1.0f;
      }
      const std::vector<float> expected = run({.backend = "reference"}, job);
      for (const Kernels& on : kernels_here()) {
        EXPECT_TRUE(same_bits(expected, run({"cpu", on.isa, 1, on.twin}, job)))
            << extreme.name << " of " << extreme.fill << " on " << on.name;
      }
    }
  }
}

TEST(MatMul, InfinitiesAndNanGoThrough) {
  Random random(3);
  for (const quant::Type* type : quant::all()) {
    Matrix matrix(*type, cols_of(*type, 2), 33);
    for (std::byte& byte : matrix.blocks) byte = std::byte(random() % 3 == 0 ? 255 : random());
    for (const int32_t rows : {1, 6, 13}) {
      Job job{.weight = matrix.weight, .rows = rows};
      job.x = gaussian(size_t(rows) * size_t(matrix.weight.cols), random);
      job.x[3] = std::bit_cast<float>(0x7fc00000u);
      job.x[job.x.size() - 1] = std::bit_cast<float>(0xff800000u);
      const std::vector<float> expected = run({.backend = "reference"}, job);
      EXPECT_TRUE(std::isnan(expected[0])) << type->name;
      for (const Kernels& on : kernels_here()) {
        EXPECT_TRUE(same_bits(expected, run({"cpu", on.isa, 2, on.twin}, job)))
            << type->name << on.name;
      }
    }
  }
}

// The only error is that of activations in 8 bits, a scale for each 32.
TEST(MatMul, IsCloseToProductsInDoublePrecision) {
  Random random(4);
  for (const quant::Type* type : quant::all()) {
    constexpr int32_t kCols = 1024, kRows = 48;
    Matrix matrix(*type, kCols, kRows);
    matrix.fill_randomly(random);
    Job job{.weight = matrix.weight, .rows = 3};
    job.x = gaussian(3 * kCols, random);
    const std::vector<float> found = run({.backend = "reference"}, job);
    std::vector<float> weights(kCols);
    for (int32_t output = 0; output < kRows; ++output) {
      quant::decode_row(*type, {matrix.weight.row(0, output), matrix.weight.row_bytes()}, weights);
      for (int32_t row = 0; row < 3; ++row) {
        double exact = 0, squares = 0;
        for (int32_t k = 0; k < kCols; ++k) {
          const double term = double(weights[size_t(k)]) * job.x[size_t(row * kCols + k)];
          exact += term;
          squares += double(weights[size_t(k)]) * weights[size_t(k)];
        }
        // The rounding error of an activation is at most amax / 254 (amax of 32 gaussians is below
        // 5); errors of different columns are independent, six deviations are allowed.
        const double tolerance = type->is_float() ? 1e-5 : 6 * 5.0 / 254 / std::sqrt(3.0);
        EXPECT_NEAR(found[size_t(row * kRows + output)], exact, tolerance * std::sqrt(squares))
            << type->name;
      }
    }
  }
}

TEST(MatMul, NoRowsAreNoWork) {
  Random random(5);
  Matrix matrix(*quant::find("Q4_0"), 64, 20);
  matrix.fill_randomly(random);
  const Job job{.weight = matrix.weight, .rows = 0};
  EXPECT_TRUE(run({.backend = "reference"}, job).empty());
  for (const Kernels& on : kernels_here())
    EXPECT_TRUE(run({"cpu", on.isa, 1, on.twin}, job).empty());
}

}  // namespace
}  // namespace cairn::matmul_test
