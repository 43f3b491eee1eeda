// The emulator of AMX's tiles, driven on instructions in memory: nothing traps, so that a processor
// with tiles of its own is not in the way. The bytes are the assembler's.
#include "tests/backends/tile_emulator.h"

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <bit>
#include <cstring>
#include <random>
#include <vector>

namespace cairn::test::tile_emulator_test {
namespace {

using Code = std::vector<uint8_t>;

constexpr int kRax = 0, kRcx = 1, kRsi = 6, kR9 = 9, kR10 = 10;

const Code kConfigure = {0xc4, 0xe2, 0x78, 0x49, 0x00};          // ldtilecfg (%rax)
const Code kRelease = {0xc4, 0xe2, 0x78, 0x49, 0xc0};            // tilerelease
const Code kZero0 = {0xc4, 0xe2, 0x7b, 0x49, 0xc0};              // tilezero %tmm0
const Code kLoad4 = {0xc4, 0xe2, 0x7b, 0x4b, 0x24, 0x08};        // tileloadd (%rax,%rcx,1)
const Code kLoadOnce4 = {0xc4, 0xe2, 0x79, 0x4b, 0x24, 0x08};    // tileloaddt1, the same
const Code kLoad6 = {0xc4, 0xe2, 0x7b, 0x4b, 0x74, 0x48, 0x40};  // …64(%rax,%rcx,2), %tmm6
const Code kLoad0 = {0xc4, 0x82, 0x7b, 0x4b, 0x04, 0x11};        // …(%r9,%r10,1), %tmm0
const Code kStore0 = {0xc4, 0xe2, 0x7a, 0x4b, 0x84, 0x31, 0x00, 1, 0, 0};  // …256(%rcx,%rsi,1)
const Code kDot = {0xc4, 0xe2, 0x4b, 0x5e, 0xc4};       // tdpbssd %tmm6, %tmm4, %tmm0
const Code kDotPairs = {0xc4, 0xe2, 0x4a, 0x5c, 0xc4};  // tdpbf16ps, the same tiles

int run(const Code& code, const TileRegisters& registers = {}) {
  return emulate_tile_instruction(code.data(), registers);
}

int64_t address_of(const void* memory) {
  return std::bit_cast<int64_t>(memory);
}

// Sizes of the tiles 0, 4 and 6, for sums of [rows][columns] and `depth` bytes.
struct Sizes {
  uint8_t bytes[64] = {1};

  Sizes(int rows, int columns, int depth) {
    set(0, rows, 4 * columns);
    set(4, rows, depth);
    set(6, depth / 4, 4 * columns);
  }
  void set(int tile, int rows, int row_bytes) {
    bytes[48 + tile] = uint8_t(rows);
    bytes[16 + 2 * tile] = uint8_t(row_bytes);
  }
  void load() const {
    TileRegisters registers = {};
    registers[kRax] = address_of(bytes);
    EXPECT_EQ(run(kConfigure, registers), 5);
  }
};

// Rows lie `stride` bytes apart; each way of naming an address is used once.
void load_left(const void* rows, int64_t stride, const Code& load = kLoad4) {
  TileRegisters registers = {};
  registers[kRax] = address_of(rows);
  registers[kRcx] = stride;
  EXPECT_EQ(run(load, registers), 6);
}

void load_right(const void* rows, int64_t stride) {
  TileRegisters registers = {};
  registers[kRax] = address_of(rows) - 64;
  registers[kRcx] = stride / 2;
  EXPECT_EQ(run(kLoad6, registers), 7);
}

void load_sums(const void* rows, int64_t stride) {
  TileRegisters registers = {};
  registers[kR9] = address_of(rows);
  registers[kR10] = stride;
  EXPECT_EQ(run(kLoad0, registers), 6);
}

void store_sums(void* rows, int64_t stride) {
  TileRegisters registers = {};
  registers[kRcx] = address_of(rows) - 256;
  registers[kRsi] = stride;
  EXPECT_EQ(run(kStore0, registers), 10);
}

TEST(TileEmulator, MultipliesSignedBytes) {
  constexpr int kRows = 5, kColumns = 3, kDepth = 16, kStride = 40;
  Sizes(kRows, kColumns, kDepth).load();
  std::mt19937 random(1);
  int8_t left[kRows][kStride], right[kDepth / 4][kStride];
  for (auto& row : left) {
    for (int8_t& byte : row) byte = int8_t(random());
  }
  for (auto& row : right) {
    for (int8_t& byte : row) byte = int8_t(random());
  }
  left[0][0] = right[0][0] = -128;
  run(kZero0);
  load_left(left, kStride);
  load_right(right, kStride);
  EXPECT_EQ(run(kDot), 5);
  run(kDot);  // Sums go on.
  int32_t sums[kRows][kColumns + 1];
  std::memset(sums, 0x55, sizeof(sums));
  store_sums(sums, sizeof(sums[0]));
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      int32_t expected = 0;
      for (int k = 0; k < kDepth; ++k) expected += left[row][k] * right[k / 4][4 * column + k % 4];
      EXPECT_EQ(sums[row][column], 2 * expected) << row << " " << column;
    }
    EXPECT_EQ(sums[row][kColumns], 0x55555555) << "written past a tile's row";
  }
  EXPECT_EQ(run(kRelease), 5);
}

uint16_t bf16(float value) {
  return uint16_t(std::bit_cast<uint32_t>(value) >> 16);
}

// One pair after the other, where the order would show; a subnormal number counts as zero.
TEST(TileEmulator, MultipliesPairs) {
  Sizes(1, 1, 8).load();
  const uint16_t left[4] = {bf16(1), bf16(0x1p24f), bf16(1), bf16(-0x1p24f)};
  const uint16_t right[4] = {bf16(3), bf16(1), bf16(4), bf16(1)};
  const uint16_t rows[2][2] = {{right[0], right[1]}, {right[2], right[3]}};
  float sum = 0.5f;
  load_sums(&sum, 64);
  load_left(left, 64);
  load_right(rows, 4);
  EXPECT_EQ(run(kDotPairs), 5);
  store_sums(&sum, 64);
  EXPECT_EQ(sum, 0.5f + ((3 + 4) + 0.0f)) << "first and second numbers have sums of their own";

  const uint16_t small[4] = {0x007f, 0, 0, 0};
  const uint16_t large[2][2] = {{bf16(0x1p120f), 0}, {0, 0}};
  sum = 0;
  load_sums(&sum, 64);
  load_left(small, 64, kLoadOnce4);
  load_right(large, 4);
  run(kDotPairs);
  store_sums(&sum, 64);
  EXPECT_EQ(sum, 0) << "a subnormal number";
  run(kRelease);
}

TEST(TileEmulator, EndsTheProgramWhereARuleIsBroken) {
  const auto ended = testing::ExitedWithCode(99);
  EXPECT_EXIT(load_left(nullptr, 0), ended, "tiles are used before they have sizes");
  EXPECT_EXIT(Sizes(17, 1, 4).load(), ended, "a tile is too large");
  const auto with = [](int rows, int columns, int depth, auto change) {
    Sizes sizes(rows, columns, depth);
    change(sizes);
    sizes.load();
    run(kDot);
  };
  const auto same = [](Sizes&) {};
  const auto more_rows = [](Sizes& sizes) { sizes.set(0, 3, 16); };
  const auto other_palette = [](Sizes& sizes) { sizes.bytes[0] = 2; };
  EXPECT_EXIT(with(2, 4, 16, more_rows), ended, "rows of the sum and of the left operand differ");
  EXPECT_EXIT(with(2, 4, 16, other_palette), ended, "palette other than 1");
  with(2, 4, 16, same);
  const Code unknown = {0xc4, 0xe2, 0x4b, 0x5f, 0xc4}, ud2 = {0x0f, 0x0b, 0, 0, 0};
  EXPECT_EXIT(run(unknown), ended, "another instruction");
  EXPECT_EXIT(run(ud2), ended, "no VEX prefix of three bytes");
  run(kRelease);
  EXPECT_EXIT(run(kZero0), ended, "tiles are used before they have sizes");
}

}  // namespace
}  // namespace cairn::test::tile_emulator_test
#endif
