// The check that refuses AMX where tiles do not multiply as AVX-512 does: it must find a wrong
// product, and pass the right ones; tiles are the processor's, or emulated.
#include "backends/cpu/product/tiles_check.h"

#include <gtest/gtest.h>

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
