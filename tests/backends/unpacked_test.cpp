// Products whose weights stay in the file, packed on the way: the bits of packed weights, for every
// format, few rows and many, whole matrices and experts.
#include <gtest/gtest.h>

#include "tests/backends/matmul_fixture.h"
#include "tests/sanitized.h"

namespace cairn::matmul_test::unpacked_test {
namespace {

std::vector<float> run_with(bool is_off, IsaLevel isa, const Job& job) {
  ThreadPool threads(2);
  for (const BackendType* type : backend_types()) {
    if (type->name != "cpu") continue;
    BackendOptions options{.threads = &threads, .isa = std::string(name(isa))};
    options.pack.is_off = is_off;
    const auto backend = type->create(options).value();
    Weight weight = job.weight;
    EXPECT_TRUE(backend->load(weight));
    Bench bench(job);
    return bench.execute(*backend, bench.plan(weight));
  }
  ADD_FAILURE() << "no backend cpu";
  return {};
}

TEST(Unpacked, EveryFormatHasTheSameBits) {
  Random random(21);
  for (const quant::Type* type : quant::all()) {
    Matrix matrix(*type, 512, 339);
    matrix.fill_randomly(random);
    const std::vector<float> bias = gaussian(339, random);
    for (const int32_t rows : {1, 3, test::kIsSlow ? 34 : 130}) {
      const Job job{.weight = matrix.weight,
                    .x = gaussian(size_t(rows) * 512, random),
                    .rows = rows,
                    .bias = bias};
      for (const IsaLevel isa : levels_here()) {
        EXPECT_TRUE(same_bits(run_with(true, isa, job), run_with(false, isa, job)))
            << type->name << ", rows " << rows << ", " << name(isa);
      }
    }
  }
}

TEST(Unpacked, ExpertsHaveTheSameBits) {
  Random random(22);
  for (const char* type : {"Q4_K", "BF16"}) {
    Matrix matrix(*quant::find(type), 256, 83, 5);
    matrix.fill_randomly(random);
    for (const int32_t rows : {1, 9}) {
      Job job{.weight = matrix.weight, .x = gaussian(size_t(rows) * 256, random), .rows = rows};
      job.ranks = 2;
      for (int32_t i = 0; i < rows; ++i) {
        job.chosen.push_back(i % 5);
        job.chosen.push_back((i + 2) % 5);
      }
      for (const IsaLevel isa : levels_here()) {
        EXPECT_TRUE(same_bits(run_with(true, isa, job), run_with(false, isa, job)))
            << type << ", rows " << rows << ", " << name(isa);
      }
    }
  }
}

}  // namespace
}  // namespace cairn::matmul_test::unpacked_test
