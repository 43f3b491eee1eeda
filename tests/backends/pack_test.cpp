// What becomes of weights when they are packed: sizes and refusals. That no value changes is what
// matmul_test.cpp shows for every format (it also covers pack_rules.cpp).
#include "backends/cpu/pack.h"

#include "tests/backends/matmul_fixture.h"

namespace cairn::cpu {
namespace {

TEST(Pack, EveryFormatStaysCompact) {
  for (const quant::Type* type : quant::all()) {
    const Weight weight{.name = "w", .type = type, .cols = 2048, .rows = 160};
    const PackedMatrix shape = packed_shape(weight);
    const double packed = double(shape.group_bytes) * shape.group_count;
    const double file = double(weight.row_bytes()) * weight.rows;
    // Formats below 4 bits become nibbles with f32 scales, at most 5 bits a weight; the others keep
    // their size but for unpacked small scales.
    EXPECT_LE(packed, file < 0.5 * 2048 * 160 ? 6.1 / 8 * 2048 * 160 : 1.2 * file) << type->name;
    EXPECT_EQ(shape.group_bytes % 64, 0);
    EXPECT_EQ(shape.scales_bytes % 64, 0);
  }
}

TEST(Pack, FormatsThatArePopularAreNotBytes) {
  const auto bits = [](std::string_view name) {
    const Weight weight{.name = "w", .type = quant::find(name), .cols = 2048, .rows = 16};
    return double(packed_shape(weight).group_bytes) * 8 / (2048 * 16);
  };
  EXPECT_EQ(bits("Q4_0"), 4.5);
  EXPECT_EQ(bits("Q8_0"), 8.5);
  EXPECT_EQ(bits("Q4_K"), 4.625);
  EXPECT_EQ(bits("Q5_K"), 5.625);
  EXPECT_EQ(bits("Q6_K"), 6.5625);
}

TEST(Pack, BlocksThatDoNotFitTheShapeAreRefused) {
  const quant::Type& type = *quant::find("Q4_0");
  matmul_test::Matrix matrix(type, 64, 10);
  Weight weight = matrix.weight;
  weight.name = "blk.0.attn_q";
  weight.rows = 11;
  PackedWeights weights;
  const auto refused = weights.add(weight);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_data);
  EXPECT_NE(refused.error().message.find("blk.0.attn_q: expected 396 bytes of Q4_0, found 360"),
            std::string::npos)
      << refused.error().message;
  weight = matrix.weight;
  weight.cols = 48;
  ASSERT_FALSE(weights.add(weight));
}

TEST(Pack, APaddedGroupIsZeros) {
  matmul_test::Random random(31);
  matmul_test::Matrix matrix(*quant::find("Q4_0"), 64, 17);
  matrix.fill_randomly(random);
  ThreadPool threads(2);
  PackedWeights weights;
  auto added = weights.add(matrix.weight);
  ASSERT_TRUE(added);
  const PackedMatrix* packed = *added;
  EXPECT_EQ(packed->data, nullptr);
  ASSERT_TRUE(weights.pack({packed, packed}, threads, {}));
  ASSERT_NE(packed->data, nullptr);
  // The second group has one row: of its f16 scales all others are zero.
  const uint8_t* scales = group_at(*packed, 0, 1);
  for (int byte = 2; byte < 32; ++byte) EXPECT_EQ(scales[byte], 0);
}

}  // namespace
}  // namespace cairn::cpu
