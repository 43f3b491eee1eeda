// The check that refuses AMX where tiles do not multiply as AVX-512 does: it must find a wrong
// product, and pass the right ones; tiles are the processor's, or emulated.
#include "backends/cpu/product/tiles_check.h"

#include <gtest/gtest.h>

#include "tests/backends/matmul_fixture.h"
#include "tests/backends/tiles_here.h"

#if defined(__x86_64__)
namespace cairn::cpu::tiles_check_test {
namespace {

bool has(IsaLevel level) {
  return runs_on(level, detect_cpu_features());
}

// AVX2's, but the last output of the last row is off by its last bit.
void multiply_nearly(const Product& product) {
  avx2::matrix_kernels.multiply(product);
  float& last = product.rows[product.row_count - 1].out[product.output_count - 1];
  uint32_t bits;
  std::memcpy(&bits, &last, 4);
  bits ^= 1;
  std::memcpy(&last, &bits, 4);
}

TEST(TilesCheck, FindsOneWrongBit) {
  if (!has(IsaLevel::avx2)) GTEST_SKIP() << "no AVX2";
  const MatrixKernels wrong{.multiply = multiply_nearly, .quantize = avx2::matrix_kernels.quantize};
  EXPECT_TRUE(same_products(avx2::matrix_kernels, avx2::matrix_kernels));
  EXPECT_FALSE(same_products(wrong, avx2::matrix_kernels));
}

TEST(TilesCheck, PassesKernelsThatAgree) {
  if (!has(IsaLevel::avx512_vnni)) GTEST_SKIP() << "no AVX-512 with VNNI";
  EXPECT_TRUE(same_products(avx2::matrix_kernels, avx512::matrix_kernels));
  const test::TilesBy by = test::tiles_here();
  if (by == test::TilesBy::nobody) GTEST_SKIP() << "tiles by " << name(by);
  const long before = test::TileEmulator::count();
  const test::UsableTiles tiles;
  EXPECT_TRUE(same_products(amx::matrix_kernels, avx512::matrix_kernels));
  if (by == test::TilesBy::emulator) {
    EXPECT_GT(test::TileEmulator::count(), before) << "no tile was used";
  }
}

// AVX2's, again and again.
void multiply_often(const Product& product) {
  for (int i = 0; i < 30; ++i) avx2::matrix_kernels.multiply(product);
}

TEST(TilesCheck, FindsWhatIsFaster) {
  if (!has(IsaLevel::avx2)) GTEST_SKIP() << "no AVX2";
  const MatrixKernels slow{.multiply = multiply_often, .quantize = avx2::matrix_kernels.quantize};
  for (const bool halves : {false, true}) {
    EXPECT_TRUE(is_faster(avx2::matrix_kernels, slow, halves));
    EXPECT_FALSE(is_faster(slow, avx2::matrix_kernels, halves));
  }
  if (test::tiles_here() != test::TilesBy::emulator) return;
  const test::UsableTiles tiles;
  EXPECT_TRUE(vectors_win_halves()) << "an emulator's tiles are slow";
}

// Weights that are left to the vectors are, and their products are the same.
TEST(TilesCheck, LeavesToVectorsWhatTheyDoFaster) {
  if (test::tiles_here() != test::TilesBy::emulator) GTEST_SKIP() << "no emulator that counts";
  for (const bool by_vectors : {false, true}) {
    const long before = test::TileEmulator::count();
    matmul_test::Random random(3);
    matmul_test::Matrix matrix(*quant::find("Q6_K"), 256, 33);
    matrix.fill_randomly(random);
    matmul_test::Job job{.weight = matrix.weight, .rows = kChunkRows + 19};
    job.x = matmul_test::gaussian(size_t(job.rows) * 256, random);
    const auto expected = matmul_test::run({.backend = "reference"}, job);
    const auto found = matmul_test::run_kernels(amx::matrix_kernels, job, by_vectors);
    EXPECT_TRUE(matmul_test::same_bits(expected, found)) << by_vectors;
    EXPECT_EQ(test::TileEmulator::count() > before, !by_vectors);
  }
}

TEST(TilesCheck, LeavesOtherLevelsAlone) {
  for (const IsaLevel level :
       {IsaLevel::scalar, IsaLevel::avx2, IsaLevel::avx2_vnni, IsaLevel::avx512_vnni}) {
    EXPECT_EQ(usable_level(level), level);
  }
}

// The program and the tests find the same.
TEST(TilesCheck, AllowsTilesWhereTheProcessorRunsThem) {
  const bool by_processor = test::tiles_here() == test::TilesBy::processor;
  if (by_processor && !has(IsaLevel::amx)) GTEST_SKIP() << "tiles without the rest of the level";
  EXPECT_EQ(usable_level(IsaLevel::amx), by_processor ? IsaLevel::amx : IsaLevel::avx512_vnni);
}

}  // namespace
}  // namespace cairn::cpu::tiles_check_test
#endif
