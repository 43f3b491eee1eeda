// fast-1's products, of pairs of bf16: by AVX-512's instruction where the machine has it, and by
// tiles, the processor's or emulated. Those of prompts are within a bound, those of answers have
// exact-1's bits; a row's role alone decides its bits, not the rows beside it, nor threads; and a
// machine without the instructions says so.
#include "backends/cpu/product/fast_product.h"

#include "backends/cpu/product/matmul.h"
#include "backends/cpu/product/tiles_check.h"
#include "tests/backends/matmul_fixture.h"
#include "tests/backends/step_builder.h"

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
  const int32_t most = cpu::kTileChunkRows + 21;
  for (const Shape shape : {Shape{608, 530, 13}, Shape{544, 530, most}, Shape{37, 41, 35},
                            Shape{1, 1, 14}, Shape{545, 66, 19}, Shape{64, 64, 24},
                            Shape{608, 530, 1}}) {
    for (const FastKernels& fast : fast_kernels_here()) {
      for (const std::string_view name : {"F32", "F16", "BF16", "Q8_0", "Q4_K"}) {
        const quant::Type& type = *quant::find(name);
        if (!type.is_float() && !fast.takes_all) continue;
        if (shape.cols % type.block_weights != 0) continue;
        if (shape.rows > 64 && name != "BF16" && name != "Q8_0") continue;  // It takes long.
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

// The levels whose kernels run here, by whomever.
std::vector<IsaLevel> fast_levels_here() {
  if (fast_kernels_here().empty()) return {};
  std::vector<IsaLevel> levels = {IsaLevel::avx512_vnni};
  if (test::tiles_take_pairs()) levels.push_back(IsaLevel::amx);
  return levels;
}

// By the kernels that fast-1 chooses for the level, which the machine need not have.
std::vector<float> run_level(IsaLevel isa, const Job& job) {
  const test::UsableTiles tiles;
  ThreadPool threads(1);
  cpu::PackedWeights weights;
  Weight weight = job.weight;
  const cpu::PackedMatrix* const packed = weights.add(weight).value();
  EXPECT_TRUE(weights.pack({packed}, threads));
  weight.packed = packed;
  Bench bench(job);
  const Plan plan = bench.plan(weight);
  return bench.execute([&](const Step& step) {
    for (const Op& op : plan.ops) {
      test::run_op(cpu::choose_matrix_kernel(op, isa, Numerics::fast_1), op, step);
    }
  });
}

// Some rows of a job, in this order.
Job rows_of(const Job& job, const std::vector<int32_t>& rows) {
  Job some = job;
  some.rows = int32_t(rows.size());
  some.x.clear();
  some.chosen.clear();
  some.answers.clear();
  for (const int32_t row : rows) {
    const auto x = job.x.begin() + int64_t(row) * job.width();
    some.x.insert(some.x.end(), x, x + job.width());
    if (!job.answers.empty()) some.answers.push_back(job.answers[size_t(row)]);
    if (job.chosen.empty()) continue;
    const auto chosen = job.chosen.begin() + int64_t(row) * job.ranks;
    some.chosen.insert(some.chosen.end(), chosen, chosen + job.ranks);
  }
  return some;
}

// The outputs of a job whose rows are computed so many at a time, in an order of their own.
std::vector<float> run_in_parts(IsaLevel isa, const Job& job, size_t part, Random& random) {
  std::vector<int32_t> order(size_t(job.rows));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const size_t outputs = size_t(job.weight.rows) * size_t(job.ranks);
  std::vector<float> all(order.size() * outputs);
  for (size_t first = 0; first < order.size(); first += part) {
    const auto begin = order.begin() + std::ptrdiff_t(first);
    const size_t count = std::min(part, order.size() - first);
    const std::vector<int32_t> rows(begin, begin + std::ptrdiff_t(count));
    const std::vector<float> some = run_level(isa, rows_of(job, rows));
    for (size_t row = 0; row < rows.size(); ++row) {
      std::copy_n(some.begin() + std::ptrdiff_t(row * outputs), outputs,
                  all.begin() + std::ptrdiff_t(size_t(rows[row]) * outputs));
    }
  }
  return all;
}

void expect_roles_decide(IsaLevel isa, Job job, Random& random) {
  const bool rounds = isa == IsaLevel::amx || job.weight.type->is_float();
  const std::string what = std::string(job.weight.type->name) + " on " + std::string(name(isa));
  const std::vector<float> exact = run({.backend = "reference"}, job);
  const std::vector<float> prompts = run_level(isa, job);
  EXPECT_EQ(same_bits(exact, prompts), !rounds) << what;
  std::vector<float> expected;
  const size_t outputs = size_t(job.weight.rows) * size_t(job.ranks);
  for (size_t row = 0; row < size_t(job.rows); ++row) {
    job.answers.push_back(random() % 3 == 0);
    const std::vector<float>& from = job.answers.back() ? exact : prompts;
    const auto first = from.begin() + std::ptrdiff_t(row * outputs);
    expected.insert(expected.end(), first, first + std::ptrdiff_t(outputs));
  }
  for (const size_t part : {1u, 2u, 5u, 13u, 30u}) {
    EXPECT_TRUE(same_bits(expected, run_in_parts(isa, job, part, random))) << what << ": " << part;
  }
}

TEST(FastProduct, RolesDecideNotTheRowsBeside) {
  Random random(13);
  for (const IsaLevel isa : fast_levels_here()) {
    for (const std::string_view name : {"BF16", "F16", "F32", "Q4_0", "Q4_K", "Q2_K"}) {
      const quant::Type& type = *quant::find(name);
      Matrix matrix(type, type.is_float() ? 70 : std::max(96, type.block_weights), 40, 2);
      matrix.fill_randomly(random);
      Job plain{.weight = matrix.weight, .rows = 30};
      plain.weight.count = 1;
      plain.weight.blocks = plain.weight.blocks.first(plain.weight.blocks.size() / 2);
      plain.x = gaussian(size_t(plain.rows) * size_t(plain.width()), random);
      expect_roles_decide(isa, plain, random);
      Job experts{.weight = matrix.weight, .rows = 30, .ranks = 2, .x_per_rank = true};
      experts.x = gaussian(size_t(experts.rows) * size_t(experts.width()), random);
      for (int32_t row = 0; row < experts.rows; ++row) {
        experts.chosen.push_back(int32_t(random() % 2));
        experts.chosen.push_back(1 - experts.chosen.back());
      }
      expect_roles_decide(isa, experts, random);
    }
  }
}

// What chooses an answer's tokens, and what exact-1 multiplies faster.
TEST(FastProduct, OutputsAreExact) {
  for (const IsaLevel isa : fast_levels_here()) {
    for (const std::string_view name : {"F32", "Q4_0"}) {
      Matrix matrix(*quant::find(name), 96, 70);
      matrix.weight.packed = &matrix;  // It is not looked at.
      const auto are_exact = [isa](const Op& op) {
        return cpu::choose_matrix_kernel(op, isa, Numerics::fast_1).run ==
               cpu::choose_matrix_kernel(op, isa).run;
      };
      for (const RowSet set : {RowSet::tokens, RowSet::outputs}) {
        const bool is_output = set == RowSet::outputs, has_tiles = isa == IsaLevel::amx;
        const bool is_exact = is_output || (name == "Q4_0" && !has_tiles);
        EXPECT_EQ(are_exact(op::MatMul{.weight = &matrix.weight, .out = {.set = set}}), is_exact)
            << name << " on " << cairn::name(isa);
        EXPECT_EQ(are_exact(op::ExpertMatMul{.weight = &matrix.weight, .out = {.set = set}}),
                  is_exact);
        EXPECT_EQ(are_exact(op::Quantize{.out = {.set = set}}), is_output || !has_tiles);
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
    for (int32_t row = 0; row < job.rows; ++row) job.answers.push_back(row % 7 == 3);
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
