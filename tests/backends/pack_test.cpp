// What becomes of weights when they are packed: sizes and refusals. That no value changes is what
// matmul_test.cpp shows for every format (it also covers pack_rules.cpp).
#include "backends/cpu/pack/pack.h"

#include "base/digest.h"
#include "tests/backends/matmul_fixture.h"

namespace cairn::cpu::pack_test {
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

// Two engines of one file have one packed copy.
TEST(Pack, TheSameBlocksArePackedOnce) {
  matmul_test::Random random(32);
  matmul_test::Matrix matrix(*quant::find("Q4_0"), 64, 32, 2);
  matrix.fill_randomly(random);
  ThreadPool threads(2);
  PackedWeights weights;
  const PackedMatrix* const first = weights.add(matrix.weight).value();
  EXPECT_GT(weights.needed_bytes({first}), 0u);
  ASSERT_TRUE(weights.pack({first}, threads));
  Weight again = matrix.weight;
  again.name = "another name";
  EXPECT_EQ(weights.add(again).value(), first);
  EXPECT_EQ(weights.needed_bytes({first}), 0u);
  // Another shape of these bytes is something else.
  Weight other = matrix.weight;
  other.count = 1;
  other.rows *= 2;
  const PackedMatrix* const second = weights.add(other).value();
  EXPECT_NE(second, first);
  EXPECT_GT(weights.needed_bytes({second}), 0u);
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
  ASSERT_TRUE(weights.pack({packed, packed}, threads));
  ASSERT_NE(packed->data, nullptr);
  // The second group has one row: of its f16 scales all others are zero.
  const uint8_t* scales = group_at(*packed, 0, 1);
  for (int byte = 2; byte < 32; ++byte) EXPECT_EQ(scales[byte], 0);
}

// What a block's numbers are stored as, by way of the format's integers.
std::vector<uint8_t> codes_of(const quant::Type& type, const std::byte* block) {
  const PackedForm form = format_rule(type).form;
  std::vector<quant::Unit> units(size_t(type.block_weights / 32));
  type.integers(block, units.data());
  std::vector<uint8_t> codes;
  for (const quant::Unit& unit : units) {
    for (const int8_t q : unit.q) {
      const int8_t* level = std::find(form.table, form.table + 16, q);
      codes.push_back(form.plane == Plane::table ? uint8_t(level - form.table)
                                                 : uint8_t(q + form.bias));
    }
  }
  return codes;
}

TEST(Pack, ReadersOfCodesAgreeWithTheFormats) {
  matmul_test::Random random(11);
  int reader_count = 0;
  for (const quant::Type* type : quant::all()) {
    const CodeReader reader = code_reader(*type);
    if (reader.codes == nullptr) continue;
    ++reader_count;
    std::vector<std::byte> block(size_t(type->block_bytes));
    for (int round = 0; round < 200; ++round) {
      for (std::byte& byte : block) byte = std::byte(random() & 255);
      std::vector<uint8_t> codes(size_t(type->block_weights));
      reader.codes(block.data(), codes.data());
      ASSERT_EQ(codes, codes_of(*type, block.data())) << type->name;
      if (reader.scale == nullptr) continue;
      float scale = 0;
      reader.scale(block.data(), &scale);
      quant::Unit unit;
      type->integers(block.data(), &unit);
      ASSERT_EQ(std::bit_cast<uint32_t>(scale), std::bit_cast<uint32_t>(unit.scale[0]));
    }
  }
  EXPECT_EQ(reader_count, 11);
}

// Caches of packed weights live longer than the program. If this fails, the packed bytes have
// changed: raise kPackedLayout, and note the new digest beside it.
TEST(Pack, TheLayoutIsTheOneThatItsNumberStandsFor) {
  matmul_test::Random random(12);
  uint64_t all = 0;
  for (const quant::Type* type : quant::all()) {
    matmul_test::Matrix matrix(*type, 512, 21, 2);
    matrix.fill_randomly(random);
    matrix.weight.name = "w";
    ThreadPool threads(2);
    PackedWeights weights;
    const PackedMatrix* packed = weights.add(matrix.weight).value();
    ASSERT_TRUE(weights.pack({packed}, threads));
    const size_t bytes = size_t(packed->group_bytes * packed->group_count * 2);
    all = digest(std::as_bytes(std::span(packed->data, bytes)), all);
  }
  EXPECT_EQ(kPackedLayout, 1u);
  EXPECT_EQ(all, 0x2a7cebe30122e4efu);
}

}  // namespace
}  // namespace cairn::cpu::pack_test
