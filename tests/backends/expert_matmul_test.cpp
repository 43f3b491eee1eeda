// Products by experts: the rows that chose an expert are gathered, which must not change a bit; and
// the reference must be the plain product of each chosen expert.
#include "tests/backends/matmul_fixture.h"

namespace cairn::matmul_test::expert_matmul_test {
namespace {

constexpr int32_t kExperts = 5, kRanks = 2, kCols = 256, kOutputs = 296;

Job expert_job(const Matrix& matrix, int32_t rows, bool x_per_rank, Random& random) {
  Job job{.weight = matrix.weight, .rows = rows, .ranks = kRanks, .x_per_rank = x_per_rank};
  job.x = gaussian(size_t(rows) * size_t(job.width()), random);
  for (int32_t row = 0; row < rows; ++row) {
    // Expert 3 is liked so much that its rows exceed a chunk; expert 4 is never chosen.
    const int32_t first = random() % 2 == 0 ? 3 : int32_t(random() % 3);
    job.chosen.push_back(first);
    job.chosen.push_back(first == 3 ? int32_t(random() % 3) : 3);
  }
  return job;
}

TEST(ExpertMatMul, EveryInstructionSetHasTheReferencesBits) {
  Random random(11);
  for (const std::string_view name : {"Q4_K", "MXFP4", "Q8_0", "F16", "IQ2_XS"}) {
    Matrix matrix(*quant::find(name), kCols, kOutputs, kExperts);
    matrix.fill_randomly(random);
    const std::vector<float> scales = gaussian(kExperts, random);
    for (const int32_t rows : {1, 2, 7, 150}) {
      for (const bool x_per_rank : {false, true}) {
        Job job = expert_job(matrix, rows, x_per_rank, random);
        const std::vector<float> bias = gaussian(size_t(kExperts) * kOutputs, random);
        if (x_per_rank) job.bias = bias;
        if (rows != 2) job.weight.scales = scales;
        const std::vector<float> expected = run({.backend = "reference", .threads = 2}, job);
        for (const IsaLevel isa : levels_here()) {
          for (const int threads : {1, 5}) {
            EXPECT_TRUE(same_bits(expected, run({"cpu", isa, threads}, job)))
                << name << " x " << rows << " on " << cairn::name(isa);
          }
        }
      }
    }
  }
}

TEST(ExpertMatMul, WithoutAChoiceEachRankIsAMatrix) {
  Random random(13);
  for (const std::string_view name : {"Q8_0", "F16"}) {
    Matrix matrix(*quant::find(name), kCols, kOutputs, kExperts);
    matrix.fill_randomly(random);
    for (const int32_t rows : {1, 9}) {
      for (const bool x_per_rank : {false, true}) {
        Job job{.weight = matrix.weight, .rows = rows, .ranks = kExperts, .x_per_rank = x_per_rank};
        job.x = gaussian(size_t(rows) * size_t(job.width()), random);
        Job chosen = job;
        for (int32_t i = 0; i < rows * kExperts; ++i) chosen.chosen.push_back(i % kExperts);
        const std::vector<float> expected = run({.backend = "reference"}, chosen);
        job.all = true;
        EXPECT_TRUE(same_bits(expected, run({.backend = "reference"}, job))) << name;
        for (const IsaLevel isa : levels_here()) {
          EXPECT_TRUE(same_bits(expected, run({"cpu", isa, 2}, job))) << name;
        }
      }
    }
  }
}

TEST(ExpertMatMul, IsThePlainProductOfTheChosenExpert) {
  Random random(12);
  Matrix matrix(*quant::find("Q5_K"), kCols, kOutputs, kExperts);
  matrix.fill_randomly(random);
  Job job = expert_job(matrix, 4, true, random);
  const std::vector<float> bias = gaussian(size_t(kExperts) * kOutputs, random);
  job.bias = bias;
  const std::vector<float> scales = gaussian(kExperts, random);
  job.weight.scales = scales;
  const std::vector<float> found = run({.backend = "reference"}, job);
  const size_t matrix_bytes = matrix.weight.row_bytes() * size_t(kOutputs);
  for (size_t pair = 0; pair < 4 * kRanks; ++pair) {
    Job plain{.weight = matrix.weight, .rows = 1};
    plain.weight.count = 1;
    plain.weight.scales = std::span(scales).subspan(size_t(job.chosen[pair]), 1);
    const auto own_bias = bias.begin() + job.chosen[pair] * kOutputs;
    plain.bias.assign(own_bias, own_bias + kOutputs);
    plain.weight.blocks =
        matrix.weight.blocks.subspan(size_t(job.chosen[pair]) * matrix_bytes, matrix_bytes);
    plain.x.assign(job.x.begin() + int64_t(pair) * kCols,
                   job.x.begin() + int64_t(pair + 1) * kCols);
    const auto first = found.begin() + int64_t(pair) * kOutputs;
    EXPECT_TRUE(same_bits({first, first + kOutputs}, run({.backend = "reference"}, plain))) << pair;
  }
}

}  // namespace
}  // namespace cairn::matmul_test::expert_matmul_test
