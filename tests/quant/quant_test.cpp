// Looking formats up, and runs of blocks.
#include "quant/quant.h"

#include <gtest/gtest.h>

#include "tests/quant/data.h"

namespace cairn::quant::quant_test {
namespace {

TEST(Quant, UnknownFormatsAreNull) {
  EXPECT_EQ(find(uint32_t(4)), nullptr);  // Q4_2, withdrawn from GGUF.
  EXPECT_EQ(find(~uint32_t(0)), nullptr);
  EXPECT_EQ(find("q4_0"), nullptr);
  EXPECT_EQ(find(""), nullptr);
}

TEST(Quant, RowBytesCountWholeBlocks) {
  EXPECT_EQ(row_bytes(*find("F32"), 5), 20u);
  EXPECT_EQ(row_bytes(*find("Q4_0"), 96), 54u);
  EXPECT_EQ(row_bytes(*find("Q6_K"), 512), 420u);
  EXPECT_EQ(row_bytes(*find("Q6_K"), 0), 0u);
}

TEST(QuantDeathTest, PartsOfBlocksAreRefused) {
  EXPECT_DEATH(row_bytes(*find("Q4_0"), 33), "block_weights");
  std::vector<float> weights(64);
  std::vector<std::byte> row(18);
  EXPECT_DEATH(decode_row(*find("Q4_0"), row, weights), "row.size");
  EXPECT_DEATH(encode_row(*find("Q4_0"), weights, row), "row.size");
}

// A row is its blocks, one after the other, with their part of the importance.
TEST(Quant, RowsAreBlocksInOrder) {
  const Type& type = *find("Q4_0");
  const std::vector<float> weights = gaussian(96, 0, 1, 1);
  std::vector<float> importance = gaussian(96, 5, 1, 2);
  std::vector<std::byte> row(54), single(18);
  encode_row(type, weights, row, importance);
  for (size_t block = 0; block < 3; ++block) {
    type.encode(weights.data() + 32 * block, importance.data() + 32 * block, single.data());
    EXPECT_TRUE(std::equal(single.begin(), single.end(), row.begin() + long(18 * block)));
  }
  std::vector<float> all_weights(96), block_weights(32);
  decode_row(type, row, all_weights);
  type.decode(row.data() + 36, block_weights.data());
  EXPECT_TRUE(std::equal(block_weights.begin(), block_weights.end(), all_weights.begin() + 64));
}

}  // namespace
}  // namespace cairn::quant::quant_test
