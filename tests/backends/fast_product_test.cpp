// fast-1's products, of pairs of bf16: by AVX-512's instruction where the machine has it, and by
// tiles, the processor's or emulated. They have a bound, not bits; but threads change no bit, few
// rows are exact-1's, and a machine without the instructions says so.
#include "backends/cpu/product/fast_product.h"

#include "backends/cpu/product/matmul.h"
#include "backends/cpu/product/tiles_check.h"
#include "tests/backends/matmul_fixture.h"

#if defined(__x86_64__)
namespace cairn::matmul_test::fast_product_test {
namespace {

struct FastKernels {
  std::string_view name;
  const cpu::MatrixKernels* kernels;
  bool takes_all;  // Quantized weights too.
};

std::string_view lacks_here(IsaLevel isa) {
  return cpu::lacks_for_fast(isa, detect_cpu_features());
}

std::vector<FastKernels> fast_kernels_here() {
  if (!lacks_here(IsaLevel::avx512_vnni).empty()) return {};
  std::vector<FastKernels> kernels = {{"avx512bf16", &avx512bf16::matrix_kernels, false}};
  if (test::tiles_take_pairs()) kernels.push_back({"amxbf16", &amxbf16::matrix_kernels, true});
  return kernels;
}

// Products in f64, and for each the sum of its terms' magnitudes.
struct Products {
  std::vector<double> values, magnitudes;
};

Products products_in_f64(const Job& job) {
  Products out;
  const size_t cols = size_t(job.weight.cols);
  std::vector<std::vector<float>> weights(size_t(job.weight.rows), std::vector<float>(cols));
  for (size_t output = 0; output < weights.size(); ++output) {
    quant::decode_row(*job.weight.type,
                      {job.weight.row(0, int32_t(output)), job.weight.row_bytes()},
                      weights[output]);
  }
  for (size_t row = 0; row < size_t(job.rows); ++row) {
    for (size_t output = 0; output < weights.size(); ++output) {
      double sum = job.bias.empty() ? 0 : job.bias[output], magnitude = std::abs(sum);
      for (size_t k = 0; k < cols; ++k) {
        const double term = double(weights[output][k]) * job.x[row * cols + k];
        sum += term;
        magnitude += std::abs(term);
      }
      out.values.push_back(sum);
      out.magnitudes.push_back(magnitude);
    }
  }
  return out;
}

// bf16 keeps 8 bits: each side of a product is off by 2^-8 of itself at most, and the f32 sum of k
// products by k * 2^-24 of their magnitudes. All outputs together are within half a percent.
void expect_close(const Job& job, const std::vector<float>& found, std::string_view name) {
  const Products exact = products_in_f64(job);
  ASSERT_EQ(found.size(), exact.values.size());
  const double bound = 2.01 / 256 + 2.0 * (job.weight.cols + 1) / (1 << 24);
  double errors = 0, squares = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double error = found[i] - exact.values[i];
    ASSERT_LE(std::abs(error), bound * exact.magnitudes[i] + 1e-30) << name << " output " << i;
    errors += error * error;
    squares += exact.values[i] * exact.values[i];
  }
  if (found.size() >= 500) {
    EXPECT_LE(std::sqrt(errors / squares), 5e-3) << name;
  }
}

TEST(FastProduct, IsWithinItsBound) {
  if (fast_kernels_here().empty()) GTEST_SKIP() << "no AVX512_BF16";
  Random random(11);
  const std::vector<float> bias = gaussian(530, random);
  struct Shape {
    int32_t cols, outputs, rows;
  };
  // More columns than a window, more outputs than a task; all rows of one; odd ones; a part of a
  // pass.
  for (const Shape shape : {Shape{608, 530, 13}, Shape{544, 258, 256}, Shape{37, 41, 35},
                            Shape{1, 1, 14}, Shape{545, 66, 19}, Shape{64, 64, 24}}) {
    for (const FastKernels& fast : fast_kernels_here()) {
      for (const std::string_view name : {"F32", "F16", "BF16", "Q8_0", "Q4_K"}) {
        const quant::Type& type = *quant::find(name);
        if (!type.is_float() && !fast.takes_all) continue;
        if (shape.cols % type.block_weights != 0) continue;
        Matrix matrix(type, shape.cols, shape.outputs);
        matrix.fill_randomly(random);
        Job job{.weight = matrix.weight, .rows = shape.rows, .bias = bias};
        job.x = gaussian(size_t(shape.rows) * size_t(shape.cols), random);
        expect_close(job, run_kernels(*fast.kernels, job), fast.name);
      }
    }
  }
}

TEST(FastProduct, TilesTakeEveryFormat) {
  if (fast_kernels_here().empty()) GTEST_SKIP() << "no AVX512_BF16";
  if (!test::tiles_take_pairs()) GTEST_SKIP() << "tiles by " << name(test::tiles_here());
  Random random(12);
  const long before = test::TileEmulator::count();
  for (const quant::Type* type : quant::all()) {
    Matrix matrix(*type, type->is_float() ? 96 : std::max(2 * type->block_weights, 96), 40);
    matrix.fill_randomly(random);
    Job job{.weight = matrix.weight, .rows = 17};
    job.x = gaussian(17 * size_t(matrix.weight.cols), random);
    expect_close(job, run_kernels(amxbf16::matrix_kernels, job), type->name);
  }
  if (test::tiles_here() == test::TilesBy::emulator) {
    EXPECT_GT(test::TileEmulator::count(), before) << "no tile was used";
  }
}

// As many as decoding has, and a draft: these are not rounded.
TEST(FastProduct, FewRowsAreExact) {
  Random random(13);
  for (const FastKernels& fast : fast_kernels_here()) {
    for (const std::string_view name : {"BF16", "F32", "Q4_0"}) {
      Matrix matrix(*quant::find(name), 96, 70);
      matrix.fill_randomly(random);
      for (const int32_t rows : {1, 2, cpu::kDirectRows, cpu::kDirectRows + 1}) {
        Job job{.weight = matrix.weight, .rows = rows};
        job.x = gaussian(size_t(rows) * 96, random);
        const bool is_exact = rows <= cpu::kDirectRows || (name == "Q4_0" && !fast.takes_all);
        EXPECT_EQ(same_bits(run({.backend = "reference"}, job), run_kernels(*fast.kernels, job)),
                  is_exact)
            << fast.name << " " << name << " " << rows;
      }
    }
  }
}

TEST(FastProduct, ThreadsDoNotChangeABit) {
  if (fast_kernels_here().empty()) GTEST_SKIP() << "no AVX512_BF16";
  Random random(14);
  const Case alone{.backend = "cpu", .isa = IsaLevel::avx512_vnni, .numerics = Numerics::fast_1};
  for (const std::string_view name : {"F16", "BF16", "Q4_0"}) {
    Matrix matrix(*quant::find(name), 544, 530);
    matrix.fill_randomly(random);
    Job job{.weight = matrix.weight, .rows = 270};  // More than the chunk of rows of a task.
    job.x = gaussian(size_t(job.rows) * 544, random);
    const std::vector<float> expected = run(alone, job);
    for (const int threads : {2, 5}) {
      Case together = alone;
      together.threads = threads;
      EXPECT_TRUE(same_bits(expected, run(together, job))) << name << threads;
    }
    const Case exact{.backend = "cpu", .isa = IsaLevel::avx512_vnni};
    EXPECT_EQ(same_bits(expected, run(exact, job)), name == "Q4_0") << name;
  }
}

// A task of an expert has more groups than a product takes at a time where they are small.
TEST(FastProduct, ExpertsAreWithinTheBoundToo) {
  if (fast_kernels_here().empty()) GTEST_SKIP() << "no AVX512_BF16";
  Random random(15);
  constexpr int32_t kCols = 64, kOutputs = 600, kRows = 40;
  Matrix matrix(*quant::find("BF16"), kCols, kOutputs, 2);
  matrix.fill_randomly(random);
  Job job{.weight = matrix.weight, .rows = kRows};
  job.x = gaussian(kRows * kCols, random);
  for (int32_t row = 0; row < kRows; ++row) job.chosen.push_back(1);
  const std::vector<float> found = run(
      {.backend = "cpu", .isa = IsaLevel::avx512_vnni, .threads = 2, .numerics = Numerics::fast_1},
      job);
  Job plain = job;
  plain.chosen.clear();
  plain.weight.count = 1;
  plain.weight.blocks = plain.weight.blocks.subspan(plain.weight.blocks.size() / 2);
  expect_close(plain, found, "experts");
}

TEST(FastProduct, IsRefusedWhereNothingComputesIt) {
  ThreadPool threads(1);
  for (const BackendType* type : backend_types()) {
    for (const IsaLevel isa : levels_of(detect_cpu_features())) {
      const auto made = type->create(
          {.threads = &threads, .isa = std::string(name(isa)), .numerics = Numerics::fast_1});
      if (type->name == "cpu" && lacks_here(cpu::usable_level(isa)).empty()) {
        EXPECT_TRUE(made) << name(isa);
        continue;
      }
      ASSERT_FALSE(made) << type->name << name(isa);
      EXPECT_EQ(made.error().code, ErrorCode::unsupported);
      EXPECT_NE(made.error().message.find("fast-1"), std::string::npos) << made.error().message;
    }
  }
  CpuFeatures all{.avx2 = true,
                  .fma = true,
                  .f16c = true,
                  .avx512 = true,
                  .avx512_vnni = true,
                  .avx512_vbmi = true,
                  .avx512_bf16 = true,
                  .amx_int8 = true,
                  .amx_bf16 = true};
  EXPECT_EQ(cpu::lacks_for_fast(IsaLevel::amx, all), "");
  EXPECT_EQ(cpu::lacks_for_fast(IsaLevel::avx512_vnni, all), "");
  EXPECT_NE(cpu::lacks_for_fast(IsaLevel::avx2, all), "");
  all.amx_bf16 = false;
  EXPECT_EQ(cpu::lacks_for_fast(IsaLevel::amx, all), "AMX-BF16");
  all.avx512_bf16 = false;
  EXPECT_EQ(cpu::lacks_for_fast(IsaLevel::avx512_vnni, all), "AVX512_BF16");
}

// AVX-512's, but the last output of the last row is off by its last bit.
void multiply_nearly(const cpu::Product& product) {
  avx512bf16::matrix_kernels.multiply(product);
  float& last = product.rows[product.row_count - 1].out[product.output_count - 1];
  last = std::bit_cast<float>(std::bit_cast<uint32_t>(last) ^ 1);
}

TEST(FastProduct, TheCheckOfTilesFindsOneWrongBit) {
  if (fast_kernels_here().empty()) GTEST_SKIP() << "no AVX512_BF16";
  if (test::tiles_take_pairs()) {
    const test::UsableTiles tiles;
    EXPECT_TRUE(cpu::same_whole_products(amxbf16::matrix_kernels, avx512::matrix_kernels));
  }
  EXPECT_TRUE(cpu::same_whole_products(avx512bf16::matrix_kernels, avx512::matrix_kernels));
  cpu::MatrixKernels wrong = avx512bf16::matrix_kernels;
  wrong.multiply = multiply_nearly;
  EXPECT_FALSE(cpu::same_whole_products(wrong, avx512::matrix_kernels));
}

}  // namespace
}  // namespace cairn::matmul_test::fast_product_test
#endif
